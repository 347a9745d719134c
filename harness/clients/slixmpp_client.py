"""One slixmpp client, driven by JSON lines on stdin, telling what happens by JSON lines on stdout.

It ends when its stdin does, so that it never outlives the harness.

Commands ("do"): connect (first, once), xml, message, presence, task, disconnect; with stream management
also drop and comeback.
Events ("event"): online, failed, stanza, done, disconnected; with stream management also dropped and
resumed.
"""

import asyncio
import json
import logging
import sys
import xml.etree.ElementTree as ET

from slixmpp import JID, ClientXMPP
from slixmpp.exceptions import IqError
from slixmpp.plugins.xep_0048.stanza import Bookmarks

CLIENT_NAMESPACE = "jabber:client"
STANZA_NAMES = ("message", "presence", "iq")
BIND = "{urn:ietf:params:xml:ns:xmpp-bind}bind"
ERROR_NAMESPACE = "{urn:ietf:params:xml:ns:xmpp-stanzas}"


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def error_condition(xml):
    """Name of the defined condition in an error stanza, or None."""
    error = xml.find(f"{{{CLIENT_NAMESPACE}}}error")
    for child in error if error is not None else ():
        if child.tag.startswith(ERROR_NAMESPACE) and child.tag != f"{ERROR_NAMESPACE}text":
            return child.tag[len(ERROR_NAMESPACE):]
    return None


def tell_stanza(stanza):
    """An input filter: it sees everything that arrives and changes nothing."""
    xml = stanza.xml
    is_stanza = stanza.name in STANZA_NAMES and stanza.namespace == CLIENT_NAMESPACE
    # The answer to binding a resource is the library's own business.
    if is_stanza and xml.find(BIND) is None:
        tell(
            "stanza",
            kind=stanza.name,
            type=xml.get("type"),
            **{"from": xml.get("from")},
            to=xml.get("to"),
            id=xml.get("id"),
            body=xml.findtext(f"{{{CLIENT_NAMESPACE}}}body"),
            errorCondition=error_condition(xml),
            xml=str(stanza),
        )
    return stanza


async def fetch_roster(xmpp):
    await xmpp.get_roster()


async def add_contact(xmpp, jid, name):
    """Puts somebody on the roster, and asks to see them."""
    await xmpp.update_roster(JID(jid), name=name)
    xmpp.send_presence_subscription(pto=jid, ptype="subscribe")


async def read_contact(xmpp, jid):
    """Returns what the library knows of a contact: name, subscription and online resources."""
    contact = xmpp.client_roster[jid]
    return {
        "name": contact["name"],
        "subscription": contact["subscription"],
        "resources": sorted(contact.resources),
    }


async def enable_carbons(xmpp):
    xmpp.register_plugin("xep_0280")
    await xmpp["xep_0280"].enable()


async def store_bookmark(xmpp, room, nick):
    xmpp.register_plugin("xep_0048")
    bookmarks = Bookmarks()
    bookmarks.add_conference(room, nick, autojoin=True)
    await xmpp["xep_0048"].set_bookmarks(bookmarks)


async def read_bookmarks(xmpp):
    xmpp.register_plugin("xep_0048")
    answer = await xmpp["xep_0048"].get_bookmarks()
    return [f"{each['jid']} {each['nick']}" for each in answer["private"]["bookmarks"]["conferences"]]


async def publish_name(xmpp, name):
    xmpp.register_plugin("xep_0054")
    vcard = xmpp["xep_0054"].make_vcard()
    vcard["FN"] = name
    await xmpp["xep_0054"].publish_vcard(vcard)


async def read_name(xmpp, of):
    xmpp.register_plugin("xep_0054")
    answer = await xmpp["xep_0054"].get_vcard(JID(of), local=False)
    return answer["vcard_temp"]["FN"]


async def publish_avatar(xmpp, text):
    """Sets a picture as clients do: it is added to the vCard that is there, if any."""
    xmpp.register_plugin("xep_0153")
    await xmpp["xep_0153"].set_avatar(avatar=text.encode(), mtype="image/png")


async def tell_state(xmpp, state):
    # The plugin looks for the feature at the login, before the script registers it.
    xmpp.send_raw(f"<{state} xmlns='urn:xmpp:csi:0'/>")


async def change_password(xmpp, password):
    xmpp.register_plugin("xep_0077")
    await xmpp["xep_0077"].change_password(password, jid=xmpp.boundjid.domain)


async def block(xmpp, jid):
    xmpp.register_plugin("xep_0191")
    await xmpp["xep_0191"].block(JID(jid))


async def unblock(xmpp, jid):
    xmpp.register_plugin("xep_0191")
    await xmpp["xep_0191"].unblock(JID(jid))


async def read_blocked(xmpp):
    xmpp.register_plugin("xep_0191")
    answer = await xmpp["xep_0191"].get_blocked()
    return sorted(str(each) for each in answer["blocklist"]["items"])


async def follow(xmpp, nodes):
    """Tells of an interest in nodes; the next presence says so by its capabilities."""
    xmpp.register_plugin("xep_0084")
    for node in nodes.split():
        xmpp["xep_0030"].add_feature(f"{node}+notify")
    await xmpp["xep_0115"].update_caps(broadcast=False)


async def set_avatar(xmpp, text):
    """Publishes a picture as clients do; returns its id."""
    xmpp.register_plugin("xep_0084")
    avatars, data = xmpp["xep_0084"], text.encode()
    await avatars.publish_avatar(data)
    about = {"id": avatars.generate_id(data), "type": "image/png", "bytes": len(data)}
    await avatars.publish_avatar_metadata(about)
    return about["id"]


async def fetch_avatar(xmpp, of, id):
    xmpp.register_plugin("xep_0084")
    answer = await xmpp["xep_0084"].retrieve_avatar(JID(of), id)
    return answer["pubsub"]["items"]["item"]["avatar_data"]["value"].decode()


async def publish_item(xmpp, node, id, xml, options="{}"):
    """Publishes an item in a node that has these options."""
    xmpp.register_plugin("xep_0060")
    form = xmpp["xep_0004"].make_form(ftype="submit")
    form.add_field(
        var="FORM_TYPE", ftype="hidden", value="http://jabber.org/protocol/pubsub#publish-options"
    )
    for name, value in json.loads(options).items():
        form.add_field(var=f"pubsub#{name}", value=value)
    await xmpp["xep_0060"].publish(None, node, id=id, payload=ET.fromstring(xml), options=form)


async def read_items(xmpp, node, of=None):
    """Returns the items of a node as "id payload"."""
    xmpp.register_plugin("xep_0060")
    answer = await xmpp["xep_0060"].get_items(JID(of) if of else None, node)
    items = answer["pubsub"]["items"]["substanzas"]
    return [f"{each['id']} {ET.tostring(each['payload'], encoding='unicode')}" for each in items]


async def retract_item(xmpp, node, id):
    xmpp.register_plugin("xep_0060")
    await xmpp["xep_0060"].retract(None, node, id, notify=True)


async def read_archive(xmpp, **options):
    """Asks for one page of the archive, of a room or of the account; returns its messages as "id body", and whether it ends."""
    xmpp.register_plugin("xep_0313")
    rsm = {name: options[name] for name in ("max", "after") if name in options}
    peer = JID(options["peer"]) if "peer" in options else None
    room = JID(options["room"]) if "room" in options else None
    answer = await xmpp["xep_0313"].retrieve(jid=room, with_jid=peer, rsm=rsm)
    results = [each["mam_result"] for each in answer["mam"]["results"]]
    messages = [f"{each['id']} {each['forwarded']['stanza']['body']}" for each in results]
    return {"messages": messages, "complete": answer["mam_fin"].xml.get("complete") == "true"}


async def follow_archive(xmpp, last):
    """Reads pages of the archive, each behind the last message, until it has one with the body `last`."""
    xmpp.register_plugin("xep_0313")
    bodies, rsm = [], {"max": "7"}
    while last not in bodies:
        answer = await xmpp["xep_0313"].retrieve(rsm=rsm)
        for each in answer["mam"]["results"]:
            bodies.append(each["mam_result"]["forwarded"]["stanza"]["body"])
            rsm["after"] = each["mam_result"]["id"]
    return bodies


async def last_archived(xmpp, count):
    """Reads the archive from its end, page by page; returns the last messages as "id body"."""
    xmpp.register_plugin("xep_0313")
    messages = []
    pages = xmpp["xep_0313"].iterate(reverse=True, rsm={"max": "7"}, total=int(count))
    async for each in pages:
        result = each["mam_result"]
        messages.insert(0, f"{result['id']} {result['forwarded']['stanza']['body']}")
    return messages


async def archive_fields(xmpp):
    xmpp.register_plugin("xep_0313")
    form = await xmpp["xep_0313"].get_fields()
    return sorted(form.get_fields())


async def archive_ends(xmpp):
    """Returns the ids of the first and the last message of the archive."""
    xmpp.register_plugin("xep_0313")
    metadata = (await xmpp["xep_0313"].get_archive_metadata())["mam_metadata"]
    return [metadata["start"]["id"], metadata["end"]["id"]]


TASKS = {
    task.__name__: task
    for task in (
        fetch_roster,
        add_contact,
        read_contact,
        enable_carbons,
        store_bookmark,
        read_bookmarks,
        publish_name,
        read_name,
        publish_avatar,
        tell_state,
        change_password,
        block,
        unblock,
        read_blocked,
        follow,
        set_avatar,
        fetch_avatar,
        publish_item,
        read_items,
        retract_item,
        read_archive,
        follow_archive,
        last_archived,
        archive_fields,
        archive_ends,
    )
}


class LocalXMPP(ClientXMPP):
    """Goes where it is told to: the domain of an account has no entry in any DNS."""

    async def get_dns_records(self, domain, port=None):
        return []


def without_channel_binding(mechanisms):
    """Makes slixmpp say that it cannot bind a login to its TLS.

    Version 1.8 binds by tls-unique, also where TLS 1.3 has no such thing and the server names other
    types (XEP-0440). Without -PLUS it claims that the server offers none, as an attack would make it.
    """
    credentials = mechanisms.sasl_callback
    mechanisms.sasl_callback = lambda required, optional: {
        **credentials(required, optional),
        "channel_binding": None,
    }
    if mechanisms.use_mech is None:
        mechanisms.use_mechs = {"SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"}


class Driven:
    def __init__(self):
        self.xmpp = None
        self.is_managed = False
        self.is_leaving = False
        self.tasks = set()
        self.is_over = asyncio.get_running_loop().create_future()

    def end(self, event, reason):
        if not self.is_over.done():
            tell(event, reason=str(reason))
            self.is_over.set_result(None)

    def run(self, command):
        getattr(self, f"do_{command.pop('do')}")(**command)

    def do_connect(
        self, jid, password, host, port, security, ca_file=None, mechanism=None, managed=False
    ):
        xmpp = LocalXMPP(jid, password, sasl_mech=mechanism)
        self.xmpp = xmpp
        # No password before the TLS that was asked for; `force_starttls` alone does not see to it.
        xmpp["feature_mechanisms"].unencrypted_plain = security == "none"
        xmpp["feature_mechanisms"].unencrypted_scram = security == "none"
        without_channel_binding(xmpp["feature_mechanisms"])
        xmpp.ca_certs = ca_file
        # Told to go to an address it knows no name that the certificate should bear, and takes any.
        xmpp.default_domain = xmpp.boundjid.domain
        # Answering subscriptions is for the scenario to do.
        xmpp.roster.auto_authorize = None
        xmpp.roster.auto_subscribe = False
        xmpp.add_filter("in", tell_stanza)
        started = "sm_enabled" if managed else "session_start"
        xmpp.add_event_handler(started, lambda _: tell("online", jid=xmpp.boundjid.full))
        self.is_managed = managed
        if managed:
            xmpp.register_plugin("xep_0198")
            xmpp.add_event_handler("session_resumed", lambda _: tell("resumed"))
            xmpp.add_event_handler("sm_failed", lambda _: self.end("failed", "stream management"))
        # Left to itself slixmpp tries again for ever.
        for failure in ("connection_failed", "ssl_invalid_chain", "failed_all_auth", "bind_failed"):
            xmpp.add_event_handler(
                failure, lambda reason, name=failure: self.end("failed", f"{name}: {reason}")
            )
        xmpp.add_event_handler("disconnected", self.disconnected)
        self.connect = lambda: xmpp.connect(
            address=(host, port),
            use_ssl=security == "direct",
            force_starttls=security == "starttls",
            disable_starttls=security != "starttls",
        )
        self.connect()

    def disconnected(self, reason):
        if self.is_managed and not self.is_leaving:
            tell("dropped")
        else:
            self.end("disconnected", reason)

    def do_xml(self, xml):
        self.xmpp.send_raw(xml)

    def do_message(self, to, body, id, type):
        message = self.xmpp.make_message(mto=to, mbody=body, mtype=type)
        message["id"] = id
        message.send()

    def do_presence(self, to=None, type=None, priority=None):
        self.xmpp.send_presence(pto=to, ptype=type, ppriority=priority)

    def do_task(self, number, name, arguments):
        async def work():
            try:
                tell("done", number=number, value=await TASKS[name](self.xmpp, **arguments))
            except IqError as error:
                tell("done", number=number, errorCondition=error.condition)

        task = asyncio.ensure_future(work())
        self.tasks.add(task)
        task.add_done_callback(self.ended)

    def ended(self, task):
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.end("failed", f"task: {task.exception()!r}")

    def do_drop(self):
        self.xmpp.abort()

    def do_comeback(self):
        self.connect()

    def do_disconnect(self):
        self.is_leaving = True
        self.xmpp.disconnect()


async def main():
    driven = Driven()
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)

    async def obey():
        while line := await commands.readline():
            driven.run(json.loads(line))

    obeying = asyncio.ensure_future(obey())
    await asyncio.wait((obeying, driven.is_over), return_when=asyncio.FIRST_COMPLETED)
    if obeying.done():
        obeying.result()


logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
asyncio.run(main())
