import { CausewayError } from "../base/mod.ts";
import type { Affiliation, PepLimits } from "../services/pep/mod.ts";
import { ACCESS_MODEL, NodeConfig } from "../services/pep/mod.ts";
import type { PepStore } from "../storage/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";
import { tryParseJid } from "../xmpp/mod.ts";
import { bytesOf, shown } from "./shown.ts";
import type { MovedNode } from "./moved_account.ts";

/** Target of nodes of personal eventing. */
export interface NodesTarget {
  readonly store: PepStore;
  readonly limits: PepLimits;
  /** Notes what is not taken. */
  note(reason: string): void;
}

const MAX_ITEMS = "pubsub#max_items";

/**
 * Takes the nodes of an account. A node that is here already keeps its configuration, and gets the
 * items that it lacks, if it has no others.
 *
 * Nobody sees more than before: a node whose access model is not known here, or is not told, is seen
 * by its owner and its members alone.
 *
 * @throws CausewayError with a code `storage/…`
 */
export async function takeNodes(
  owner: BareJid,
  nodes: readonly MovedNode[],
  target: NodesTarget,
): Promise<void> {
  for (const node of nodes) await takeNode(owner, node, target);
}

async function takeNode(owner: BareJid, node: MovedNode, target: NodesTarget): Promise<void> {
  const { store, limits } = target;
  const { localpart } = owner;
  const note = (reason: string) => target.note(`node ${shown(node.name)}: ${reason}`);
  const found = await store.node(localpart, node.name);
  // An import that is continued finds the node that it has made, and reports the same of it.
  const made = configOf(owner, node, { limits, note });
  const config = found === undefined ? made : NodeConfig.decode(found.config);
  const fitting = node.items.filter(({ xml }) => bytesOf(xml) <= limits.maxItemBytes);
  const large = node.items.length - fitting.length;
  if (large > 0) note(`${large} items have more than ${limits.maxItemBytes} bytes`);
  const kept = config.persists ? fitting.slice(-config.maxItems(limits)) : [];
  const left = fitting.length - kept.length;
  if (left > 0) note(`${left} items are more than it keeps`);
  const stored = found === undefined
    ? []
    : await store.newest(localpart, node.name, limits.maxItemsPerNode);
  const meant = new Map(kept.map(({ id, xml }) => [id, xml]));
  if (stored.some(({ id, xml }) => meant.get(id) !== xml)) {
    return note("it is there already, with other items");
  }
  const here = new Set(stored.map(({ id }) => id));
  const missing = kept.filter(({ id }) => !here.has(id));
  let expected = found?.config;
  let refused = 0;
  for (const item of missing.length === 0 && expected === undefined ? [undefined] : missing) {
    const publication = {
      node: node.name,
      expected,
      config: config.encode(),
      item,
      maxItems: config.maxItems(limits),
    };
    const outcome = await tryPublish(store, localpart, publication, limits);
    if (outcome === "published") expected = publication.config;
    else if (outcome === "too-large") refused++;
    else {
      return note(
        outcome === "full"
          ? "the account has no room for all of it"
          : "it was changed while it was taken",
      );
    }
  }
  if (refused > 0) note(`${refused} items are too large for the database`);
}

async function tryPublish(
  store: PepStore,
  ...publication: Parameters<PepStore["publish"]>
): Promise<"published" | "changed" | "full" | "too-large"> {
  try {
    return await store.publish(...publication);
  } catch (thrown) {
    const isTooLarge = thrown instanceof CausewayError && thrown.code === "storage/value-too-large";
    if (isTooLarge) return "too-large";
    throw thrown;
  }
}

/** Returns the configuration of a node that is made, as near to the source's as there is one here. */
function configOf(
  owner: BareJid,
  { name, options, affiliations }: MovedNode,
  { limits, note }: { readonly limits: PepLimits; note(reason: string): void },
): NodeConfig {
  let config = NodeConfig.newOf(name);
  let isHidden = options === undefined;
  if (isHidden) note("only its owner and members see it: its source does not say who may");
  const left: string[] = [];
  for (const [option, written] of options ?? []) {
    if (written.every((value) => value === "")) continue; // as servers write what nobody has set
    const isMost = option === MAX_ITEMS && Number(written[0]) > limits.maxItemsPerNode;
    const next = config.with(new Map([[option, isMost ? ["max"] : written]]), limits);
    if (next !== undefined) config = next;
    else if (option !== ACCESS_MODEL) left.push(shown(option));
    else {
      isHidden = true;
      const model = shown(written[0] ?? "");
      note(`only its owner and members see it: its access model ${model} is none here`);
    }
  }
  if (left.length > 0) note(`options that are not taken: ${left.join(", ")}`);
  const affiliated = config.affiliate(affiliationsOf(owner, affiliations, note));
  if (affiliated === undefined) {
    isHidden = true;
    note("only its owner sees it: it has too many affiliations");
  } else config = affiliated;
  if (!isHidden) return config;
  const hidden = new Map([[ACCESS_MODEL, ["whitelist"]]]);
  // A configuration that is full has no room for it; a new one always has.
  return config.with(hidden, limits) ?? NodeConfig.newOf(name).with(hidden, limits)!;
}

function affiliationsOf(
  owner: BareJid,
  written: ReadonlyMap<string, string>,
  note: (reason: string) => void,
): ReadonlyMap<string, Affiliation> {
  const affiliations = new Map<string, Affiliation>();
  for (const [text, affiliation] of written) {
    const jid = tryParseJid(text)?.bare.text;
    if (jid === owner.text || affiliation === "none") continue;
    if (jid !== undefined && (affiliation === "member" || affiliation === "outcast")) {
      affiliations.set(jid, affiliation);
    } else note(`affiliation ${shown(affiliation)} of ${shown(text)} is not taken`);
  }
  return affiliations;
}
