//! Counts the allocations, and their bytes, for binding one request and for decoding one page of 100 rows.
//! Invariant: the results are counts and not times, so they are the same on every machine. The benchmark asserts nothing.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;

use allocation_counter::{AllocationInfo, measure};
use base::Response;
use catalog::{Args, PagePosition, PageRequest, RequestedPage};
use serde_json::{Value, json};

const ROWS: usize = 100;

/// Makes a page of tickets in the JSON form of the demo API.
fn page() -> Vec<u8> {
    let body = "Seen on two machines since the last release; a restart helps for an hour. ".repeat(4);
    let row = |number: usize| {
        json!({
            "project": "OPS", "number": number, "title": format!("Ticket {number} that fills a page"), "state": "open",
            "priority": 3, "votes": 7, "labels": ["bug", "ops"], "owner": {"id": "ada", "name": "Ada Okafor"},
            "reporter": {"id": "rosa", "name": "Rosa Lindqvist"}, "created_at": "2026-04-01T09:00:00Z",
            "due": "2026-05-01", "body": body,
        })
    };
    let data: Vec<Value> = (0..ROWS).map(row).collect();
    json!({"data": data, "page": 1, "per_page": ROWS, "total": 4000}).to_string().into_bytes()
}

fn main() {
    let catalog = catalog::read("demo.yaml", include_str!("../catalogs/demo.yaml")).unwrap();
    let capability = &catalog.capabilities["ticket_list"];
    let args: Args = [("project", json!("OPS")), ("state", json!("open"))].map(|(k, v)| (k.to_owned(), v)).into();
    let at = PageRequest { at: PagePosition::Number(7), size: ROWS };
    let bound = measure(|| {
        black_box(
            catalog::bind(
                &catalog,
                capability,
                &catalog::BindInput { page: Some(&at), ..catalog::BindInput::new(&args) },
            )
            .unwrap(),
        );
    });
    let response = Response { status: 200, headers: Vec::new(), body: page() };
    let parsed = measure(|| {
        black_box(serde_json::from_slice::<Value>(&response.body).unwrap());
    });
    let decoded = measure(|| {
        let requested = RequestedPage { page: &at, rows_before: 7 * ROWS };
        black_box(
            catalog::decode(
                &catalog,
                capability,
                &catalog::DecodeInput {
                    response: &response,
                    args: &args,
                    page: Some(requested),
                    max_depth: 64,
                    window: catalog::RowWindow::ALL,
                },
            )
            .unwrap(),
        );
    });
    println!("{:<58} {:>11} {:>10}", "", "allocations", "bytes");
    line("bind one request (5 parameters, 2 given, and a page)", &bound);
    line("only parse a page of 100 rows to serde_json::Value", &parsed);
    line("decode that page to typed rows, parsing included", &decoded);
}

fn line(name: &str, counted: &AllocationInfo) {
    println!("{name:<58} {:>11} {:>10}", counted.count_total, counted.bytes_total);
}
