//! Tests of the program `test-api`: it prints its address, and serves until it is killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use testkit::raw_http::RawClient;

#[tokio::test]
async fn the_program_prints_its_address_and_serves() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_test-api")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let client = RawClient { address: line.trim_end().parse().unwrap() };
    let projects = client.get("/api/projects").await;
    program.kill().unwrap();
    program.wait().unwrap();
    assert_eq!(projects["total"], 6);
}

#[test]
fn an_unknown_argument_ends_the_program() {
    let ended = Command::new(env!("CARGO_BIN_EXE_test-api")).args(["--prot", "1"]).output().unwrap();
    assert!(!ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stderr).contains("usage: test-api [--port N]"));
}
