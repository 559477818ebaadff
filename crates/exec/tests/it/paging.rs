//! Tests of every paging form, against a server with correct pages and with hostile page positions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{Limits, TenantId};
use exec::{Coverage, Ctx, PartialReason, Rowset, StepError, run};
use lang::scope::{ExposedEntity, Scope};
use testkit::memory::{ManualClock, MapSecrets};
use tokio::sync::Semaphore;

/// The paging forms: the last segment of the path on the server, and the `paging` line of the catalog.
const PAGING_FORMS: [(&str, &str); 5] = [
    ("page", "paging: {page: page, size: {send: per_page, max: 100}, total: total}"),
    ("offset", "paging: {offset: offset, size: {send: limit, max: 100}, total: total}"),
    ("cursor", "paging: {cursor: next_cursor, send: cursor, size: {send: limit, max: 100}}"),
    ("link", "paging: {link: next, size: {send: per_page, max: 100}}"),
    ("next-url", "paging: {next: next, size: {send: limit, max: 100}}"),
];

async fn start_demo() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(testapi::serve(listener));
    address
}

/// Reads the whole list of a form. `query` is added to the path of its pages.
async fn read_list(
    address: std::net::SocketAddr,
    form: (&str, &str),
    query: &str,
    limits: &Limits,
) -> Result<Arc<Rowset>, Arc<StepError>> {
    let rows = if form.0 == "link" { "" } else { "rows: data" };
    let text = format!(
        "catalog: pages\nversion: 1\ntitle: Pages\norigin: http://{address}\nentities:\n  Ticket:\n    about: x\n    key: [project, number]\n    \
         fields: {{project: string, number: integer}}\ncapabilities:\n  tickets:\n    query: Ticket\n    http: GET /paging/{}{query}\n    {rows}\n    {}\n",
        form.0, form.1
    );
    let catalog = Arc::new(catalog::read("pages.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}")));
    let exposed = ExposedEntity {
        symbol: "e1".into(),
        catalog: catalog.clone(),
        entity: "Ticket".into(),
        relations: BTreeMap::new(),
        methods: BTreeMap::new(),
    };
    let scope = Scope { entities: vec![exposed], ..Scope::default() };
    let (checked, _) = lang::check::check(&scope, &lang::syntax::parse("Ticket", limits).program).unwrap();
    let plan = lang::plan::plan(&checked, limits);
    let http = upstream::HttpUpstream::new(
        upstream::Options::default(),
        Arc::new(MapSecrets::new()),
        Arc::new(ManualClock::default()),
    )
    .unwrap();
    let tenant = TenantId::local();
    let calls = Semaphore::new(4);
    let catalogs = BTreeMap::from([(catalog.id.clone(), catalog)]);
    let ctx = Ctx::new(&http, &tenant, &catalogs, limits, &calls);
    run(&ctx, &plan).await.returns.remove(0).result
}

#[tokio::test]
async fn each_paging_form_reads_every_row_once() {
    let address = start_demo().await;
    for form in PAGING_FORMS {
        let rows = read_list(address, form, "", &Limits::default())
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", form.0));
        let distinct: BTreeSet<String> =
            rows.rows.iter().map(|r| format!("{}/{}", r["project"], r["number"])).collect();
        assert_eq!((rows.rows.len(), distinct.len()), (321, 321), "{}", form.0);
        assert_eq!(rows.coverage, Coverage::Complete, "{}", form.0);
    }
}

#[tokio::test]
async fn each_paging_form_reports_a_cut_by_a_budget() {
    let address = start_demo().await;
    for form in PAGING_FORMS {
        let rows = read_list(address, form, "", &Limits { rows: 150, ..Limits::default() }).await.unwrap();
        assert_eq!(
            (rows.rows.len(), &rows.coverage),
            (150, &Coverage::partial(PartialReason::RowBudget)),
            "{}",
            form.0
        );
        let rows = read_list(address, form, "", &Limits { pages: 2, ..Limits::default() }).await.unwrap();
        assert_eq!(
            (rows.rows.len(), &rows.coverage),
            (200, &Coverage::partial(PartialReason::PageBudget)),
            "{}",
            form.0
        );
    }
}

#[tokio::test]
async fn a_repeated_page_position_ends_the_list_as_unknown() {
    let address = start_demo().await;
    for form in PAGING_FORMS.into_iter().filter(|(name, _)| ["cursor", "next-url"].contains(name)) {
        let rows = read_list(address, form, "?repeat=1", &Limits::default()).await.unwrap();
        assert_ne!(rows.coverage, Coverage::Complete, "{}", form.0);
        assert!(rows.rows.len() < 500, "{}: {}", form.0, rows.rows.len());
    }
}

#[tokio::test]
async fn a_next_link_to_another_origin_is_refused() {
    let address = start_demo().await;
    let other_origin = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other_address = other_origin.local_addr().unwrap();
    for form in PAGING_FORMS.into_iter().filter(|(name, _)| ["link", "next-url"].contains(name)) {
        let error =
            read_list(address, form, &format!("?next=http://{other_address}"), &Limits::default()).await.unwrap_err();
        assert!(error.to_string().contains("another origin"), "{}: {error}", form.0);
    }
    let connection = tokio::time::timeout(std::time::Duration::from_millis(100), other_origin.accept()).await;
    assert!(connection.is_err(), "no request left for the other origin");
}
