//! Checks any program that parses: it has either mistakes or a plan that can be shown.
//! Invariant: nothing panics, and every position of a mistake lies in the text.
#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base::{Diagnostic, Limits, Timestamp};
use lang::scope::Scope;
use lang::syntax::parse;
use lang::{check, plan};
use libfuzzer_sys::fuzz_target;
use teach::{TeachRequest, Ledger, Seed};

static SCOPE: LazyLock<Scope> = LazyLock::new(|| {
    let texts = [
        ("tracker.yaml", include_str!("../../tests/lang/catalogs/tracker.yaml")),
        ("shop.yaml", include_str!("../../tests/lang/shop.yaml")),
    ];
    let catalogs: BTreeMap<_, _> = texts
        .iter()
        .filter_map(|(name, text)| catalog::read(name, text).ok())
        .map(|c| (c.id.clone(), Arc::new(c)))
        .collect();
    let seeds: Vec<Seed> = catalogs
        .values()
        .flat_map(|c| c.entities.keys().map(|e| Seed::new(c.id.clone(), e)))
        .collect();
    let Ok(wave) = Ledger::default().extend(&catalogs, &TeachRequest::all(&seeds)) else { panic!("the catalogs cannot be taught") };
    let mut scope = wave.ledger.scope(&catalogs);
    scope.now = Some(Timestamp(1_794_745_845_678));
    scope
});

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let parsed = parse(text, &limits);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let found = match check::check(&SCOPE, &parsed.program) {
        Ok((checked, notes)) => {
            assert!(!notes.iter().any(Diagnostic::is_error), "{notes:?}");
            let _ = check::outline(&checked);
            let _ = plan::explain(&plan::plan(&checked, &limits));
            notes
        }
        Err(found) => {
            assert!(found.iter().any(Diagnostic::is_error), "refused without a mistake");
            found
        }
    };
    for found in &found {
        assert!(text.get(found.span.start as usize..found.span.end as usize).is_some(), "{found:?}");
    }
    let _ = base::render_for_model(text, &found);
});
