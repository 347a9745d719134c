import assert from "node:assert/strict";
import { AdminProgram, RiakDouble } from "./mod.ts";
import type { RiakDoubleOptions } from "./mod.ts";

const SCHEMA = `<schema name="x" version="1.5"><fields>
  <field name="name" type="_yz_str" indexed="true" stored="true"/>
  <field name="age_counter" type="long" indexed="true" stored="true"/>
  <field name="words" type="text" indexed="true" stored="false"/>
  ${
  ["_yz_id", "_yz_ed", "_yz_pn", "_yz_fpn", "_yz_vtag", "_yz_rk", "_yz_rt", "_yz_rb", "_yz_err"]
    .map((name) =>
      `<field name="${name}" type="_yz_str" indexed="true" stored="true" ` +
      `${name === "_yz_id" ? 'required="true"' : ""}/>`
    ).join("")
}
  </fields><uniqueKey>_yz_id</uniqueKey><types>
  <fieldType name="_yz_str" class="solr.StrField" sortMissingLast="true"/>
  <fieldType name="long" class="solr.TrieLongField"/>
  <fieldType name="text" class="solr.TextField"/>
  </types></schema>`;
const JSON_TYPE = { "Content-Type": "application/json" };

/** A double with a bucket type of maps, one of sets and one without data types that keeps siblings. */
async function prepared(options: RiakDoubleOptions = {}) {
  const double = await RiakDouble.start(options);
  for (const site of double.sites) {
    for (
      const [name, props] of [
        ["maps", { datatype: "map" }],
        ["sets", { datatype: "set" }],
        ["siblings", {}],
        ["plain", { last_write_wins: true, allow_mult: false, dvv_enabled: false }],
        ["both", { last_write_wins: true, dvv_enabled: false }],
      ] as const
    ) {
      const args = ["bucket-type", "create", name, JSON.stringify({ props })];
      assert.equal(site.types.admin(args).code, 0);
      assert.equal(site.types.admin(["bucket-type", "activate", name]).code, 0);
    }
  }
  return double;
}

async function ask(
  { port }: { readonly port: number },
  path: string,
  init: RequestInit = {},
): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  return { status: response.status, text: await response.text(), headers: response.headers };
}

async function update(at: { readonly port: number }, path: string, operation: unknown) {
  const body = JSON.stringify(operation);
  return await ask(at, path, { method: "POST", headers: JSON_TYPE, body });
}

async function dataAt(at: { readonly port: number }, path: string) {
  return JSON.parse((await ask(at, path)).text) as {
    readonly value: Record<string, unknown>;
    readonly context: string;
  };
}

const PATH = "/types/maps/buckets/b/datatypes/k";

Deno.test("a map takes operations of every type, and refuses others whole", async () => {
  await using double = await prepared();
  assert.deepEqual(JSON.parse((await ask(double, PATH)).text), { type: "map", error: "notfound" });
  const operation = {
    update: {
      a_register: "one",
      b_register: { assign: "two" },
      c_counter: 5,
      d_counter: { decrement: 2 },
      e_set: { add: "x", add_all: ["y", "z"] },
      f_flag: "enable",
      g_map: { update: { h_register: "in" } },
    },
  };
  assert.equal((await update(double, PATH, operation)).status, 204);
  assert.equal((await update(double, PATH, { update: { c_counter: -1 } })).status, 204);
  const { value, context } = await dataAt(double, PATH);
  const expected = {
    a_register: "one",
    b_register: "two",
    c_counter: 4,
    d_counter: -2,
    e_set: ["x", "y", "z"],
    f_flag: true,
    g_map: { h_register: "in" },
  };
  assert.deepEqual(value, expected);
  for (
    const wrong of [
      { update: { a_register: 7 } },
      { update: { nothing: "x" } },
      { update: { "line\nbreak_register": "x" } },
      { update: { e_set: { add: 1 } } },
      { update: { f_flag: true } },
      { update: { a_register: "changed", c_counter: "many" } },
      { change: {} },
      { remove: ["a_register"] }, // without a context
      "word",
    ]
  ) assert.equal((await update(double, PATH, wrong)).status, 400, JSON.stringify(wrong));
  assert.deepEqual((await dataAt(double, PATH)).value, expected);
  const removal = { remove: ["a_register"], update: { e_set: { remove: "x" } }, context };
  assert.equal((await update(double, PATH, removal)).status, 204);
  const { a_register: _, ...others } = expected;
  assert.deepEqual((await dataAt(double, PATH)).value, { ...others, e_set: ["y", "z"] });
});

Deno.test("sites that merge keep what each has changed, and remove what a context has seen alone", async () => {
  await using double = await prepared({ sites: 2 });
  const [one, other] = double.nodes as [typeof double.nodes[0], typeof double.nodes[0]];
  await update(one, PATH, {
    update: { s_set: { add_all: ["kept", "gone"] }, r_register: "first" },
  });
  double.merge();
  const { context } = await dataAt(one, PATH);
  await update(one, PATH, { update: { s_set: { remove: "gone", add: "one" } }, context });
  await update(other, PATH, { update: { s_set: { add: "other" }, n_counter: 2 } });
  await update(other, PATH, { update: { r_register: "second" } });
  await update(one, PATH, { update: { n_counter: 3 } });
  double.merge();
  double.merge();
  for (const site of [one, other]) {
    const { value } = await dataAt(site, PATH);
    assert.deepEqual((value["s_set"] as string[]).toSorted(), ["kept", "one", "other"]);
    assert.deepEqual([value["r_register"], value["n_counter"]], ["second", 5]);
  }
  // An element that is added again where nobody has seen its removal stays.
  const seen = await dataAt(one, PATH);
  await update(other, PATH, { update: { s_set: { add: "kept" } } });
  await update(one, PATH, { update: { s_set: { remove: "kept" } }, context: seen.context });
  double.merge();
  const { value } = await dataAt(one, PATH);
  assert.ok((value["s_set"] as string[]).includes("kept"));
});

Deno.test("a removal with a context that a site has not seen waits for what it is about", async () => {
  await using double = await prepared({ sites: 2 });
  const [one, other] = double.nodes as [typeof double.nodes[0], typeof double.nodes[0]];
  const path = "/types/sets/buckets/b/datatypes/k";
  await update(one, path, { add: "x" });
  const { context } = await dataAt(one, path);
  assert.equal((await update(other, path, { remove: "x", context })).status, 204);
  double.merge();
  assert.deepEqual((await dataAt(other, path)).value, []);
  assert.deepEqual((await dataAt(one, path)).value, []);
});

Deno.test("objects have siblings unless the last write wins, and conditions are kept", async () => {
  await using double = await prepared();
  const path = "/types/siblings/buckets/b/keys/k";
  const put = (at: string, body: string, headers: Record<string, string> = {}) =>
    ask(double, at, { method: "PUT", body, headers: { "Content-Type": "text/plain", ...headers } });
  assert.equal((await ask(double, path)).status, 404);
  assert.equal((await put(path, "one", { "If-None-Match": "*" })).status, 204);
  assert.equal((await put(path, "two", { "If-None-Match": "*" })).status, 412);
  await put(path, "two");
  const both = await ask(double, path);
  assert.equal(both.status, 300);
  const [, first] = both.text.split("\n");
  assert.equal((await ask(double, `${path}?vtag=${first}`)).text, "one");
  const vclock = both.headers.get("X-Riak-Vclock")!;
  await put(path, "three", { "X-Riak-Vclock": vclock });
  assert.equal((await ask(double, path)).text, "three");
  const unclear = "/types/both/buckets/b/keys/k";
  await put(unclear, "one");
  await put(unclear, "two");
  assert.equal((await ask(double, unclear)).status, 300, "allow_mult and last_write_wins");
  const plain = "/types/plain/buckets/b/keys/k";
  await put(plain, "one");
  await put(plain, "two");
  const found = await ask(double, plain);
  assert.equal(found.text, "two");
  assert.equal((await put(plain, "x", { "If-Match": '"other"' })).status, 412);
  assert.equal((await put(plain, "x", { "If-Match": found.headers.get("ETag")! })).status, 204);
  assert.equal((await ask(double, plain, { method: "DELETE" })).status, 204);
  assert.equal((await ask(double, plain)).status, 404);
});

Deno.test("secondary indexes are sorted and paged, and want a backend with order", async () => {
  await using double = await prepared();
  for (const [key, age] of [["c", 7], ["a", 100], ["b", 7]] as const) {
    const headers = { "Content-Type": "text/plain", "X-Riak-Index-age_int": `${age}` };
    await ask(double, `/types/plain/buckets/b/keys/${key}`, { method: "PUT", body: key, headers });
  }
  const index = (path: string) => ask(double, `/types/plain/buckets/b/index/${path}`);
  assert.deepEqual(JSON.parse((await index("age_int/0/99")).text), { keys: ["b", "c"] });
  const first = JSON.parse((await index("$key/a/z?max_results=2")).text);
  assert.deepEqual(first.keys, ["a", "b"]);
  const rest = await index(
    `$key/a/z?max_results=2&continuation=${encodeURIComponent(first.continuation)}`,
  );
  assert.deepEqual(JSON.parse(rest.text), { keys: ["c"] });
  assert.equal((await index("age_int/x/y")).status, 400);
  double.site.hasSecondaryIndexes = false;
  assert.equal((await index("$key/a/z")).status, 500);
});

Deno.test("a search finds what was committed, by the types of its schema", async () => {
  await using double = await RiakDouble.start();
  const search = { "Content-Type": "application/xml" };
  const put = (path: string, headers: Record<string, string>, body: string) =>
    ask(double, path, { method: "PUT", headers, body });
  assert.equal((await put("/search/index/i", JSON_TYPE, '{"schema":"i"}')).status, 400, "order");
  assert.equal((await put("/search/schema/i", search, "<schema")).status, 400);
  assert.equal((await put("/search/schema/i", search, SCHEMA.replace("_yz_rk", "x"))).status, 400);
  assert.equal((await put("/search/schema/i", JSON_TYPE, SCHEMA)).status, 415);
  const create = ["bucket-type", "create", "t", '{"props":{"search_index":"i","datatype":"map"}}'];
  assert.equal(double.site.types.admin(create).code, 1, "the index does not exist yet");
  assert.equal((await put("/search/schema/i", search, SCHEMA)).status, 204);
  assert.equal((await put("/search/index/i", JSON_TYPE, '{"schema":"i"}')).status, 204);
  assert.equal((await put("/search/index/i", JSON_TYPE, '{"schema":"i"}')).status, 409);
  assert.equal(double.site.types.admin(create).code, 0);
  assert.equal((await ask(double, "/types/t/buckets/b/datatypes/k")).status, 404, "not active");
  double.site.types.admin(["bucket-type", "activate", "t"]);
  double.site.commitsAtOnce = false;
  await update(double, "/types/t/buckets/b/datatypes/k", { update: { age_counter: 7 } });
  const find = async (q: string) => {
    const query = new URLSearchParams({ wt: "json", q });
    const { status, text } = await ask(double, `/search/query/i?${query}`);
    return status === 200 ? JSON.parse(text).response.docs : text;
  };
  assert.deepEqual(await find("age_counter:[1 TO *]"), []);
  double.site.indexes.get("i")!.commit();
  assert.equal((await find("age_counter:[1 TO *]"))[0].age_counter, 7);
  assert.equal((await find('_yz_rk:k AND NOT (_yz_rb:x OR _yz_rb:"y")')).length, 1);
  assert.equal((await find("_yz_rb:b*"))[0]._yz_rk, "k");
  for (const q of ["age_counter:7 age_counter:8", "a:", '"', "unknown:x", "_yz_rk:[a TO"]) {
    assert.equal(typeof await find(q), "string", q);
  }
});

Deno.test("wrong methods, paths, headers and parameters are refused", async () => {
  await using double = await prepared();
  const cases: readonly (readonly [number, string, RequestInit?])[] = [
    [405, PATH, { method: "PUT", body: "{}", headers: JSON_TYPE }],
    [406, PATH, { method: "POST", body: "{}", headers: { "Content-Type": "text/plain" } }],
    [400, "/types/plain/buckets/b/keys/k?n=1"],
    [400, "/types/plain/buckets/b/keys/k?r=many"],
    [400, "/types/plain/buckets/%62/keys/k"],
    [403, "/types/plain/buckets/b/datatypes/k"],
    [404, "/types/unknown/buckets/b/keys/k"],
    [404, "/buckets/b/keys/k"],
    [404, "/types/plain/buckets/b/keys"],
    [405, "/ping", { method: "POST" }],
  ];
  for (const [status, path, init] of cases) {
    assert.equal((await ask(double, path, init)).status, status, path);
  }
  assert.equal((await ask(double, "/ping")).text, "OK");
});

Deno.test("the admin program of a site is a program", async () => {
  await using double = await RiakDouble.start();
  await using admin = await AdminProgram.start(double.site);
  const run = async (...args: string[]) => {
    const { code, stdout } = await new Deno.Command(admin.path, { args }).output();
    return [code, new TextDecoder().decode(stdout)];
  };
  assert.deepEqual(await run("bucket-type", "create", "x", '{"props":{}}'), [0, "x created\n"]);
  assert.deepEqual(await run("bucket-type", "activate", "x"), [0, "x has been activated\n"]);
  assert.deepEqual(await run("bucket-type", "list"), [0, "default (active)\nx (active)\n"]);
  const wrong = '{"props":{"last_write_wins":true}}';
  assert.equal((await run("bucket-type", "create", "y", wrong))[0], 1);
});
