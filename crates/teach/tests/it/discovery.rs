//! Tests of discovery over the shipped catalogs: quality on the labelled intents, permissions, reloads, ranking and decisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::{CatalogId, Digest};
use catalog::{Capability, Catalog, Permissions, Registry};
use teach::discovery::{Decision, DiscoveryResult, Index, MAX_LIMIT, Query};
use teach::words::stems;

use crate::labelled_intents::{Outcome, intents, outcomes, quality, right_decisions, shipped};

fn find(
    index: &Index,
    intent: &str,
    apis: &[&str],
    allowed: &dyn Fn(&Catalog, &Capability) -> bool,
) -> DiscoveryResult {
    let apis = apis.iter().map(|api| CatalogId::parse(api).unwrap()).collect();
    index.discover(&Query { intent: intent.to_owned(), apis, limit: MAX_LIMIT }, allowed)
}

fn names(result: &DiscoveryResult) -> Vec<String> {
    result.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect()
}

fn allow_all(_: &Catalog, _: &Capability) -> bool {
    true
}

#[test]
fn the_labels_of_the_intents_are_valid() {
    let registry = shipped();
    let intents = intents();
    assert!(intents.len() >= 200, "{}", intents.len());
    let ids: BTreeSet<&String> = intents.iter().map(|one| &one.id).collect();
    assert_eq!(ids.len(), intents.len(), "an id twice");
    let mut apis = BTreeSet::new();
    let mut paraphrases_with_the_name = Vec::new();
    for one in &intents {
        let byte = u8::from_str_radix(&Digest::of(one.id.as_bytes()).to_string()[..2], 16).unwrap();
        assert_eq!(one.split, if byte.is_multiple_of(2) { "dev" } else { "held" }, "{}", one.id);
        for name in one.expected.iter().flatten() {
            let (api, entity) = name.split_once(':').unwrap();
            assert!(registry.get(api).unwrap().entity(entity).is_some(), "{}: {name}", one.id);
            apis.insert(api.to_owned());
            let intent_stems = stems(&one.intent);
            let shares_a_stem = stems(entity).iter().any(|stem| intent_stems.contains(stem));
            if one.kind == "paraphrase" && shares_a_stem {
                paraphrases_with_the_name.push(format!("{} says the name of {name}", one.id));
            }
        }
        assert!(["literal", "paraphrase", "multi", "near_miss"].contains(&one.kind.as_str()), "{}", one.id);
        assert!(one.kind != "multi" || one.expected.len() > 1, "{}", one.id);
    }
    assert!(apis.len() >= 10, "{apis:?}");
    assert_eq!(paraphrases_with_the_name, Vec::<String>::new(), "no paraphrases");
}

/// The expected minimum values are measured values minus a small tolerance. A smaller value is a regression.
#[test]
fn recall_and_rank_stay_above_their_floors() {
    let all = outcomes(&Index::new(&shipped()), &intents());
    let floor = |name: &str, of: &dyn Fn(&Outcome) -> bool, recall: f64, mrr: f64| {
        let quality = quality(all.iter().filter(|o| of(o)));
        assert!(quality.recall_at_5 >= recall, "{name}: recall@5 {:.3} under {recall}", quality.recall_at_5);
        assert!(quality.mrr >= mrr, "{name}: MRR {:.3} under {mrr}", quality.mrr);
    };
    floor("all", &|_| true, 0.96, 0.89);
    floor("held out", &|o| o.labelled.split == "held", 0.95, 0.87);
    floor("paraphrases", &|o| o.labelled.kind == "paraphrase", 0.95, 0.87);
    floor("several APIs", &|o| o.labelled.kind == "multi", 0.95, 0.95);
    let (right, of) = right_decisions(&all);
    assert!(right * 100 >= of * 89, "no_match is right in {right} of {of}");
}

#[test]
fn an_entity_without_allowed_capabilities_is_not_found() {
    let index = Index::new(&shipped());
    let allow = Permissions::new(Some(&["github", "stripe"]), Some(&["github:issue_*", "stripe:*"]), true);
    let allowed = |catalog: &Catalog, capability: &Capability| allow.permits(catalog, capability);
    for one in intents() {
        for name in names(&find(&index, &one.intent, &[], &allowed)) {
            let (api, entity) = name.split_once(':').unwrap();
            assert!(api == "stripe" || (api == "github" && entity == "Issue"), "{}: {name}", one.id);
        }
    }
    assert!(names(&find(&index, "weather in Berlin", &[], &allowed)).is_empty());
    assert_eq!(find(&index, "anything at all", &[], &|_, _| false), DiscoveryResult::default());
}

#[test]
fn words_of_a_forbidden_capability_do_not_lead_to_its_entity() {
    let index = Index::new(&shipped());
    let only_reads = |_: &Catalog, c: &Capability| c.kind.is_read();
    let result = names(&find(&index, "finalize", &[], &allow_all));
    assert_eq!(result.first().map(String::as_str), Some("stripe:Invoice"), "invoice_finalize has this word");
    assert_eq!(names(&find(&index, "finalize", &[], &only_reads)), Vec::<String>::new());
}

#[test]
fn an_embedded_entity_is_found_while_its_holder_is_visible() {
    let index = Index::new(&shipped());
    let line = "demo-store:Line".to_owned();
    assert!(names(&find(&index, "order lines", &[], &allow_all)).contains(&line));
    let no_orders = |_: &Catalog, c: &Capability| c.entity != "Order";
    assert!(!names(&find(&index, "order lines", &[], &no_orders)).contains(&line));
}

#[test]
fn a_reload_indexes_only_changed_catalogs() {
    let text = |title: &str| include_str!("../../../../catalogs/demo.yaml").replace("a unit of work in", title);
    let read = |file: &str, text: &str| Arc::new(catalog::read(file, text).unwrap());
    let slack = read("slack.yaml", include_str!("../../../../catalogs/slack.yaml"));
    let registry = |demo: &str| Registry::new([slack.clone(), read("demo.yaml", demo)]).unwrap();
    let before = Index::new(&registry(&text("a unit of work in")));
    let after = before.next(&registry(&text("a zeppelin of")));
    assert_eq!(after.shared_with(&before), 1, "slack did not change");
    assert!(names(&find(&before, "zeppelin", &[], &allow_all)).is_empty());
    assert_eq!(names(&find(&after, "zeppelin", &[], &allow_all)).first().map(String::as_str), Some("demo:Ticket"));
    let fresh = Index::new(&registry(&text("a zeppelin of")));
    assert_eq!(find(&after, "tickets in slack", &[], &allow_all), find(&fresh, "tickets in slack", &[], &allow_all));
}

#[test]
fn a_named_api_comes_first_and_other_apis_than_the_requested_ones_do_not_appear() {
    let index = Index::new(&shipped());
    for (intent, api) in [("issues on GitLab", "gitlab"), ("issues in Jira", "jira"), ("gh issues", "github")] {
        let result = find(&index, intent, &[], &allow_all);
        assert_eq!(result.rows[0].api.as_str(), api, "{intent}");
        assert_eq!(result.rows[0].entity, "Issue", "{intent}");
    }
    let result = find(&index, "issues", &["linear", "jira"], &allow_all);
    assert!(!result.rows.is_empty() && result.rows.iter().all(|hit| ["linear", "jira"].contains(&hit.api.as_str())));
}

#[test]
fn several_apis_share_the_first_rows() {
    let index = Index::new(&shipped());
    let apis = |result: &DiscoveryResult, rows: usize| {
        result.rows.iter().take(rows).map(|hit| hit.api.to_string()).collect::<BTreeSet<_>>().len()
    };
    assert!(apis(&find(&index, "open bugs", &[], &allow_all), 5) >= 4);
    assert_eq!(apis(&find(&index, "GitHub, Slack, Stripe and Notion users", &[], &allow_all), 4), 4);
}

#[test]
fn a_neighbour_of_a_hit_ranks_above_an_unrelated_entity() {
    let index = Index::new(&shipped());
    let result = names(&find(&index, "karma", &[], &allow_all));
    assert_eq!(result.first().map(String::as_str), Some("hackernews:User"));
    assert_eq!(result.get(1).map(String::as_str), Some("hackernews:Item"), "{result:?}");
}

#[test]
fn a_decision_fits_its_intent() {
    let index = Index::new(&shipped());
    let decide = |intent: &str| find(&index, intent, &[], &allow_all).decide();
    let options = |intent: &str| {
        decide(intent).options.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect::<Vec<_>>()
    };
    assert_eq!(decide("list the Stripe invoices").decision, Decision::Ready);
    assert_eq!(options("list the Stripe invoices").first().map(String::as_str), Some("stripe:Invoice"));
    assert_eq!(decide("open issues").decision, Decision::ClarifyApi);
    assert!(options("open issues").len() > 1 && options("open issues").iter().all(|name| name.ends_with(":Issue")));
    assert_eq!(decide("stripe").decision, Decision::ClarifyEntity);
    assert!(options("stripe").len() > 1);
    assert_eq!(decide("transcribe this podcast").decision, Decision::NoMatch);
    assert_eq!(decide("").decision, Decision::NoMatch);
    let both = options("post the open GitHub pull requests to Slack");
    assert!(both.contains(&"github:PullRequest".to_owned()) && both.contains(&"slack:Message".to_owned()), "{both:?}");
}

#[test]
fn a_limit_counts_the_omitted_rows_and_keeps_their_order() {
    let index = Index::new(&shipped());
    let query = |limit| Query { intent: "who writes comments on issues".to_owned(), apis: Vec::new(), limit };
    let few = index.discover(&query(3), &allow_all);
    let many = index.discover(&query(1_000), &allow_all);
    assert_eq!(few.rows.len(), 3);
    assert_eq!(few.rows[..], many.rows[..3]);
    assert_eq!(many.rows.len(), MAX_LIMIT);
    assert_eq!(few.rows.len() + few.omitted, many.rows.len() + many.omitted);
    assert_eq!(Index::new(&shipped()).discover(&query(1_000), &allow_all), many);
}

#[test]
fn a_strange_intent_is_answered_like_any_other() {
    let index = Index::new(&shipped());
    let long = "issue ".repeat(2_000);
    for intent in
        ["", " ", "🦀", "'", "a", "\u{0}", "ЗАДАЧИ İstanbul ßß", "e1{p2=$}", &long, "-".repeat(5_000).as_str()]
    {
        let result = find(&index, intent, &[], &allow_all);
        assert!(result.rows.len() <= MAX_LIMIT);
    }
    let empty = Index::new(&Registry::new([]).unwrap());
    assert_eq!(find(&empty, "issues", &[], &allow_all), DiscoveryResult::default());
}
