//! Tests of the check of Host and Origin: pages of other sites cannot use the served demo API.

use testkit::raw_http::{JSON, RawClient};
use tokio::net::TcpListener;

async fn served() -> RawClient {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, demo::router()).await });
    RawClient { address }
}

#[tokio::test]
async fn a_page_of_another_site_cannot_read_or_write() {
    let api = served().await;
    let ticket = br#"{"title": "written by a page"}"#;
    for headers in [
        vec![("Origin", "https://evil.example"), JSON],
        vec![("Origin", "null"), JSON],
        vec![("Sec-Fetch-Site", "cross-site"), JSON],
        vec![("Sec-Fetch-Site", "same-site"), JSON],
    ] {
        for request in ["POST /api/projects/OPS/tickets", "GET /api/projects"] {
            let reply = api.ask(request, &headers, ticket).await;
            assert_eq!(reply.status, 403, "{request} {headers:?}: {}", reply.text());
            assert!(reply.text().contains("origin_refused"), "{}", reply.text());
        }
    }
    assert_eq!(api.ask("GET /api/projects", &[], b"").await.status, 200);
}

#[tokio::test]
async fn a_name_that_was_rebound_to_this_address_is_refused() {
    let api = served().await;
    // The client writes its own Host first, so these requests have two. A single foreign one is sent as an absolute URI.
    for (request, headers) in
        [("GET /api/projects", vec![("Host", "evil.example")]), ("GET http://evil.example/api/projects", vec![])]
    {
        let reply = api.ask(request, &headers, b"").await;
        assert!(matches!(reply.status, 400 | 403), "{request} {headers:?}: {}", reply.text());
    }
}
