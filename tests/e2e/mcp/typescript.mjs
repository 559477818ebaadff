// The official TypeScript client on the whole path in both eras, over HTTP and over stdio. test_typescript.py runs this script.
// Each check prints one line of JSON: its title, and `ok` or what failed.
// Invariants: every server ends with its block; the client does not warn.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// TOOL_NAMES holds the names of all tools, in order, separated by spaces.
const { TOKAMAK, TOOLS, TOOL_NAMES } = process.env;
const installed = createRequire(join(TOOLS, "e2e-node", "package.json"));
const { Client, StreamableHTTPClientTransport } = installed("@modelcontextprotocol/client");
const { StdioClientTransport } = installed("@modelcontextprotocol/client/stdio");

const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = (...words) => warnings.push(words.join(" "));

for (const era of ["modern", "legacy"]) {
  await overHttp(era);
  await overStdio(era);
  await overRestart(era);
}
process.exit(0);

async function overHttp(era) {
  const { server, url } = await startServer(mkdtempSync(join(tmpdir(), "data-")));
  try {
    await wholePath(`http ${era}`, era, new StreamableHTTPClientTransport(url));
  } finally {
    server.kill("SIGKILL");
  }
}

async function startServer(data, port = "0") {
  const server = spawn(TOKAMAK, ["serve", "--port", port, "--data", data], { stdio: ["ignore", "ignore", "pipe"] });
  const [ready] = await within(60, "the server starts", once(createInterface({ input: server.stderr }), "line"));
  return { server, url: new URL(`${ready.split(" ")[1]}/mcp`) };
}

// A client that was connected before its server died goes on. In the older revisions it also holds a stream open, which it must
// open again by itself.
async function overRestart(era) {
  const data = mkdtempSync(join(tmpdir(), "data-"));
  let { server, url } = await startServer(data);
  const client = new Client({ name: "e2e", version: "1" }, { versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" } });
  const program = { logical_session_ref: "s0", program: "e1[p1]" };
  try {
    await client.connect(new StreamableHTTPClientTransport(url));
    await call(client, "plasm_context", { intent: "typescript restart", seeds: [{ api: "demo", entity: "Project" }] });
    const before = await call(client, "plasm_run", program);
    server.kill("SIGKILL");
    await once(server, "exit");
    ({ server } = await startServer(data, url.port));
    await check(`http ${era}: a connected client goes on with its refs after kill -9`, async () => {
      equal(await call(client, "plasm_run", program), before);
      const { contents } = await client.readResource({ uri: "plasm://session/s0/r/1" });
      equal(JSON.parse(contents[0].text).returns.length, 1);
    });
  } finally {
    await client.close().catch(() => {});
    server.kill("SIGKILL");
  }
}

async function overStdio(era) {
  const data = mkdtempSync(join(tmpdir(), "data-"));
  const args = ["serve", "--stdio", "--data", data];
  await wholePath(`stdio ${era}`, era, new StdioClientTransport({ command: TOKAMAK, args, stderr: "ignore" }));
}

async function wholePath(at, era, transport) {
  const mode = era === "modern" ? "auto" : "legacy";
  const client = new Client({ name: "e2e", version: "1" }, { versionNegotiation: { mode } });
  warnings.length = 0;
  await check(`${at}: connects`, async () => {
    await client.connect(transport);
    const version = client.getNegotiatedProtocolVersion();
    equal(version, era === "modern" ? "2026-07-28" : "2025-11-25");
  });
  await check(`${at}: lists the tools`, async () => {
    const { tools } = await client.listTools();
    equal(tools.map((tool) => tool.name).join(" "), TOOL_NAMES);
  });
  await check(`${at}: context, plan and run`, async () => {
    const seeds = [{ api: "demo", entity: "Project" }];
    const opened = await call(client, "plasm_context", { intent: "typescript", seeds });
    equal(opened.split("\n")[0], "`s0`");
    const program = { logical_session_ref: "s0", program: "Project[key]" };
    equal((await call(client, "plasm", program)).slice(0, 7), "plan ok");
    equal(await call(client, "plasm_run", program), "## result (6 rows)\nkey\nAPI\nDOC\nMOB\nOPS\nSEC\nWEB");
  });
  await check(`${at}: reads the artifact as a resource`, async () => {
    const { contents } = await client.readResource({ uri: "plasm://session/s0/r/1" });
    equal(JSON.parse(contents[0].text).returns[0].rows.length, 6);
  });
  await check(`${at}: a mistake is an isError result`, async () => {
    const wrong = { logical_session_ref: "s0", program: "Project[" };
    const answer = await client.callTool({ name: "plasm", arguments: wrong });
    equal(answer.isError, true);
    equal(answer.content[0].text.slice(0, 12), "bad_program:");
  });
  await check(`${at}: closes without a warning`, async () => {
    await client.close();
    equal(warnings.join("; "), "");
  });
}

async function call(client, name, args) {
  const answer = await client.callTool({ name, arguments: args });
  if (answer.isError) throw new Error(`isError: ${answer.content[0].text}`);
  return answer.content[0].text;
}

async function check(title, body) {
  let outcome = "ok";
  try {
    await within(60, title, body());
  } catch (problem) {
    outcome = String(problem.message ?? problem).replace(/\s+/g, " ").slice(0, 600);
  }
  console.log(JSON.stringify([title, outcome]));
}

function equal(actual, wanted) {
  if (actual !== wanted) throw new Error(`it is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`);
}

function within(seconds, what, promise) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`${what}: not within ${seconds} s`)), seconds * 1000).unref();
  });
  return Promise.race([promise, late]);
}

function once(emitter, event) {
  return new Promise((resolve) => emitter.once(event, (...values) => resolve(values)));
}
