//! Tests of `tokamak secret`, `doctor` and `serve` with an encrypted store.
//! Invariant: no output of a process contains the value of a secret, and every started process is ended.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// The environment variable with the key of the encrypted store.
const KEY: &str = "TOKAMAK_SECRETS_KEY";
/// The token that the demo API accepts.
const TOKEN: &str = "demo-token";

fn tokamak(data: &Path, key: Option<&str>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tokamak"));
    command.args(arguments).env("TOKAMAK_DATA", data).env_remove("TOKAMAK_CONFIG").env_remove(KEY);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(key) = key {
        command.env(KEY, key);
    }
    command
}

fn run(data: &Path, key: Option<&str>, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = tokamak(data, key, arguments).stdin(Stdio::piped()).spawn().unwrap();
    // The write fails if the command refuses its arguments and ends without reading standard input.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command that must succeed, and returns its output.
fn succeed(data: &Path, arguments: &[&str], input: &str) -> String {
    let ended = run(data, Some("right"), arguments, input.as_bytes());
    assert!(ended.status.success(), "{arguments:?}: {}", text(&ended));
    String::from_utf8(ended.stdout).unwrap()
}

/// Runs a command that must fail, and returns its exit code and the stable code of its error.
fn refused(data: &Path, key: Option<&str>, arguments: &[&str], input: &[u8]) -> (i32, String) {
    let ended = run(data, key, &[&["--json"], arguments].concat(), input);
    let printed = text(&ended);
    assert!(!printed.contains("panicked") && !printed.contains("hunter2"), "{printed}");
    let error: Value = serde_json::from_slice(&ended.stderr).unwrap_or_else(|_| json!({"error": {"code": printed}}));
    (ended.status.code().unwrap(), error["error"]["code"].as_str().unwrap().to_owned())
}

#[test]
fn secrets_are_set_listed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    assert_eq!(succeed(data, &["--json", "secret", "list"], ""), "{\n  \"secrets\": [],\n  \"bindings\": {}\n}\n");
    assert_eq!(succeed(data, &["secret", "set", "B"], "hunter2\n"), "B is set\n");
    assert_eq!(succeed(data, &["secret", "set", "A"], "hunter2"), "A is set\n");
    let replaced: Value = serde_json::from_str(&succeed(data, &["--json", "secret", "set", "A"], "another")).unwrap();
    assert_eq!(replaced, json!({"name": "A", "replaced": true}));
    let unbound = "A  bound to no origin\nB  bound to no origin\n";
    assert_eq!(succeed(data, &["secret", "list"], ""), unbound);
    let elsewhere = tempfile::tempdir().unwrap();
    let named = ["secret", "list", "--data", data.to_str().unwrap()];
    assert_eq!(succeed(elsewhere.path(), &named, ""), unbound);
    assert_eq!(succeed(data, &["secret", "remove", "A"], ""), "A is removed\n");
    assert_eq!(refused(data, Some("right"), &["secret", "remove", "A"], b""), (3, "no_secret".to_owned()));
    assert_eq!(succeed(data, &["secret", "list"], ""), "B  bound to no origin\n");
    // A value on the command line is refused.
    assert_eq!(refused(data, Some("right"), &["secret", "set", "A", "hunter2"], b"").0, 2);
}

#[test]
fn every_refusal_has_a_code_and_does_not_change_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let path = data.join("secrets.enc");
    let set = ["secret", "set", "A"];
    let list = ["secret", "list"];
    assert_eq!(refused(data, None, &set, b"hunter2"), (2, "secrets_no_key".to_owned()));
    succeed(data, &set, "hunter2");
    let whole = std::fs::read(&path).unwrap();
    let flipped: Vec<u8> =
        whole.iter().enumerate().map(|(at, byte)| if at == 100 { byte ^ 1 } else { *byte }).collect();
    let damaged: [(&[u8], &str, &str); 5] = [
        (&whole, "wrong", "secrets_wrong_key"),
        (&whole[..50], "right", "secrets_truncated"),
        (b"", "right", "secrets_truncated"),
        (&flipped, "right", "secrets_damaged"),
        (b"A=hunter2\n", "right", "secrets_foreign"),
    ];
    for (bytes, key, code) in damaged {
        std::fs::write(&path, bytes).unwrap();
        let exit = if code == "secrets_wrong_key" { 2 } else { 1 };
        for arguments in [&set[..], &list, &["secret", "remove", "A"], &["serve", "--port", "0"]] {
            let result = refused(data, Some(key), arguments, b"hunter2");
            assert_eq!(result, (exit, code.to_owned()), "{arguments:?}");
        }
        let doctor = run(data, Some(key), &["doctor", "--port", "0"], b"");
        assert!(!doctor.status.success() && text(&doctor).contains("FAIL  secrets"), "{}", text(&doctor));
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{code}: the file was written over");
    }
    std::fs::write(&path, &whole).unwrap();
    for input in [&b""[..], b"\n", &[b'x'; 64 * 1024 + 1], b"\xff\xfe"] {
        assert_eq!(refused(data, Some("right"), &set, input), (2, "secret_value".to_owned()));
    }
    assert_eq!(refused(data, Some("right"), &["secret", "set", "../A"], b"x"), (2, "secret_name".to_owned()));
    assert_eq!(refused(data, Some("right"), &["secret", "set", KEY], b"x"), (2, "secret_value".to_owned()));
    assert_eq!(succeed(data, &list, ""), "A  bound to no origin\n");
}

#[test]
fn the_key_can_be_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let settings = dir.path().join("settings.toml");
    std::fs::write(&settings, format!("secrets_key_file = {:?}\n", key.display().to_string())).unwrap();
    let named = ["--config", settings.to_str().unwrap(), "secret", "list"];
    assert_eq!(refused(dir.path(), None, &named, b""), (3, "missing".to_owned()));
    std::fs::write(&key, "right\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(refused(dir.path(), None, &named, b""), (2, "secrets_key".to_owned()));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    succeed(dir.path(), &["secret", "set", "A"], "hunter2");
    let listed = run(dir.path(), None, &named, b"");
    assert_eq!(text(&listed), "A  bound to no origin\n");
    // The environment overrides the file.
    assert_eq!(refused(dir.path(), Some("wrong"), &named, b""), (2, "secrets_wrong_key".to_owned()));
}

#[test]
fn secrets_that_processes_set_at_the_same_time_are_all_stored() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..6).map(|number| format!("N{number}")).collect();
    let started: Vec<Child> = names
        .iter()
        .map(|name| {
            let mut child =
                tokamak(dir.path(), Some("right"), &["secret", "set", name]).stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(b"hunter2").unwrap();
            child
        })
        .collect();
    for child in started {
        let ended = child.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", text(&ended));
    }
    assert_eq!(
        succeed(dir.path(), &["secret", "list"], ""),
        format!("{}  bound to no origin\n", names.join("  bound to no origin\n"))
    );
}

#[test]
fn secrets_are_bound_and_unbound() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path();
    let (one, two) = ("https://one.example", "https://two.example:8443");
    assert_eq!(succeed(data, &["secret", "bind", "A", one, two], ""), format!("A may be sent to {one}, {two}\n"));
    let named = format!("A (not in the encrypted store)  for {one}, {two}\n");
    let listed = run(data, None, &["secret", "list"], b"");
    assert!(text(&listed).starts_with(&named), "bindings need no key: {}", text(&listed));
    assert_eq!(succeed(data, &["secret", "set", "A"], "hunter2"), "A is set\n");
    let listed: Value = serde_json::from_str(&succeed(data, &["--json", "secret", "list"], "")).unwrap();
    assert_eq!(listed, json!({"secrets": ["A"], "bindings": {"A": [one, two]}}));
    assert_eq!(succeed(data, &["secret", "unbind", "A", two], ""), format!("A is bound to {two} no longer\n"));
    assert_eq!(refused(data, None, &["secret", "unbind", "A", two], b""), (3, "no_binding".to_owned()));
    assert_eq!(succeed(data, &["secret", "unbind", "A"], ""), "A is bound to no origin any more\n");
    assert_eq!(succeed(data, &["secret", "list"], ""), "A  bound to no origin\n");
    for (name, origin) in [
        ("A", "http://one.example"),
        ("A", "one.example"),
        ("A", "https://one.example/path"),
        ("../A", one),
        (KEY, one),
    ] {
        let result = refused(data, None, &["secret", "bind", name, one, origin], b"");
        assert_eq!(result, (2, "secret_binding".to_owned()), "{name} {origin}");
    }
    assert_eq!(succeed(data, &["secret", "list"], ""), "A  bound to no origin\n", "a refused command binds nothing");
    // The table of the settings binds too, and cannot be changed by a command.
    let settings = data.join("settings.toml");
    std::fs::write(&settings, format!("[secrets]\nA = \"{one}\"\n")).unwrap();
    let settings = settings.to_str().unwrap();
    assert_eq!(succeed(data, &["--config", settings, "secret", "list"], ""), format!("A  for {one}\n"));
    let removed = refused(data, Some("right"), &["--config", settings, "secret", "unbind", "A"], b"");
    assert_eq!(removed, (3, "no_binding".to_owned()));
}

/// A running `tokamak serve`. It is killed when the value is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(data: &Path, catalogs: &Path) -> Self {
        let arguments = ["serve", "--port", "0", "--no-demo", "--catalogs", catalogs.to_str().unwrap()];
        let mut process = tokamak(data, Some("right"), &arguments).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let ready = lines.next().unwrap().unwrap();
        // A thread reads all further lines, because a full pipe would block the server.
        std::thread::spawn(move || lines.for_each(drop));
        let url = ready.split_whitespace().nth(1).unwrap().to_owned();
        Self { process, url }
    }

    async fn call(&self, tool: &str, arguments: Value) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client
            .post(format!("{}/mcp", self.url))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool);
        request.body(body.to_string()).send().await.unwrap().text().await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_running_server_finds_secrets_that_are_set_later() {
    // The client needs a TLS provider even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(testapi::serve(listener));
    let dir = tempfile::tempdir().unwrap();
    let catalogs = dir.path().join("catalogs");
    std::fs::create_dir(&catalogs).unwrap();
    let catalog = format!(
        "catalog: guarded\nversion: 1\ntitle: Guarded\norigin: http://{address}\nauth: {{bearer: GUARDED_TOKEN}}\n\
         entities:\n  Project: {{about: a body of work, key: [key], fields: {{key: string}}}}\n\
         capabilities:\n  project_list: {{query: Project, http: GET /auth/bearer, rows: data}}\n"
    );
    std::fs::write(catalogs.join("guarded.yaml"), catalog).unwrap();
    let data = dir.path().join("data");
    let server = Server::start(&data, &catalogs);
    let seeds = json!([{"api": "guarded", "entity": "Project"}]);
    server.call("plasm_context", json!({"intent": "secrets", "seeds": seeds})).await;
    let program = json!({"logical_session_ref": "s0", "program": "Project[key]"});

    let before = server.call("plasm_run", program.clone()).await;
    assert!(before.contains("tokamak secret set GUARDED_TOKEN"), "{before}");
    succeed(&data, &["secret", "set", "GUARDED_TOKEN"], TOKEN);
    // The secret is sent only after the operator has bound it to the origin.
    let unbound = server.call("plasm_run", program.clone()).await;
    let command = format!("tokamak secret bind GUARDED_TOKEN http://{address}");
    assert!(unbound.contains(&command) && unbound.contains("E0601") && !unbound.contains(TOKEN), "{unbound}");
    let doctor = run(
        &data,
        Some("right"),
        &["doctor", "--port", "0", "--no-demo", "--catalogs", catalogs.to_str().unwrap()],
        b"",
    );
    assert!(!doctor.status.success() && text(&doctor).contains(&command), "{}", text(&doctor));
    assert!(text(&doctor).contains("WARN  safety    [secrets] lacks a binding: "), "{}", text(&doctor));
    succeed(&data, &["secret", "bind", "GUARDED_TOKEN", "https://another.example"], "");
    assert!(server.call("plasm_run", program.clone()).await.contains(&command));
    succeed(&data, &["secret", "bind", "GUARDED_TOKEN", &format!("http://{address}")], "");
    let after = server.call("plasm_run", program.clone()).await;
    assert!(after.contains("OPS") && !after.contains(TOKEN), "{after}");
    succeed(&data, &["secret", "set", "GUARDED_TOKEN"], "hunter2");
    let refused = server.call("plasm_run", program.clone()).await;
    assert!(refused.contains("401") && !refused.contains("hunter2"), "{refused}");
    succeed(&data, &["secret", "remove", "GUARDED_TOKEN"], "");
    let removed = server.call("plasm_run", program).await;
    assert!(removed.contains("tokamak secret set GUARDED_TOKEN"), "{removed}");

    succeed(&data, &["secret", "set", "GUARDED_TOKEN"], TOKEN);
    let named = ["doctor", "--port", "0", "--no-demo", "--catalogs", catalogs.to_str().unwrap()];
    let doctor = succeed(&data, &named, "");
    assert!(doctor.contains("the encrypted store opens, 1 secret"), "{doctor}");
    assert!(doctor.contains("GUARDED_TOKEN is set and bound to http://"), "{doctor}");
    assert!(!doctor.contains("lacks a binding"), "{doctor}");
}
