//! The program `test-api [--port N]`: serves the test API on loopback until the process is killed.
//! The program prints its address in one line on stdout as soon as it listens. Without `--port`, or with port 0, it uses a free port.

use std::io::{Error, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port(&arguments)?)).await?;
    print_address(listener.local_addr()?)?;
    testapi::serve(listener).await
}

fn port(arguments: &[String]) -> std::io::Result<u16> {
    let usage = || Error::new(ErrorKind::InvalidInput, "usage: test-api [--port N]");
    match arguments {
        [] => Ok(0),
        [option, port] if option == "--port" => port.parse().map_err(|_| usage()),
        _ => Err(usage()),
    }
}

fn print_address(address: SocketAddr) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{address}")?;
    // A pipe buffers the line, and the test that started this process waits for it.
    stdout.flush()
}
