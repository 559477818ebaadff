//! Who may have which name, when several files claim it.
//! Invariant: no two winners share a name. Who had a name keeps it; a name nobody had goes to the first claimant. A shipped
//! catalog makes room for a file with its id.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;

use super::names;
use crate::model::Catalog;

/// A file, or a catalog shipped in the binary.
#[derive(Debug, Clone)]
pub struct Claimant {
    /// What it holds now; `None` where that is no catalog.
    pub newest: Option<Arc<Catalog>>,
    /// What of it is offered until now.
    pub before: Option<Arc<Catalog>>,
    pub shipped: bool,
}

/// What came of a claim.
#[derive(Debug, Clone)]
pub enum Verdict {
    Newest(Arc<Catalog>),
    /// The one offered before stays.
    Before(Arc<Catalog>),
    Nothing,
}

impl Verdict {
    pub fn catalog(&self) -> Option<&Arc<Catalog>> {
        match self {
            Verdict::Newest(catalog) | Verdict::Before(catalog) => Some(catalog),
            Verdict::Nothing => None,
        }
    }
}

/// A verdict for each claimant, in their order.
pub fn settle(claimants: &[Claimant]) -> Vec<Verdict> {
    let held = held_before(claimants);
    let mut verdicts: Vec<Verdict> = claimants.iter().map(first_verdict).collect();
    eliminate(claimants, &mut verdicts, &held);
    // One may have lost against another that lost in turn: whoever fits after all is let in.
    while let Some(at) = fitting(claimants, &verdicts, &held) {
        verdicts[at] = first_verdict(&claimants[at]);
        eliminate(claimants, &mut verdicts, &held);
    }
    for hidden in hidden(claimants, &verdicts) {
        verdicts[hidden] = Verdict::Nothing;
    }
    verdicts
}

/// Who holds each name, among verdicts that are settled.
pub fn owners(verdicts: &[Verdict]) -> BTreeMap<&CatalogId, usize> {
    let winners = verdicts.iter().enumerate().filter_map(|(at, verdict)| Some((at, verdict.catalog()?)));
    winners.flat_map(|(at, catalog)| names(catalog).map(move |name| (name, at))).collect()
}

type Held<'a> = BTreeMap<&'a CatalogId, usize>;

/// What was offered together shared no name, so each name has one holder at most.
fn held_before(claimants: &[Claimant]) -> Held<'_> {
    let before = claimants.iter().enumerate().filter_map(|(at, claimant)| Some((at, claimant.before.as_ref()?)));
    before.flat_map(|(at, catalog)| names(catalog).map(move |name| (name, at))).collect()
}

fn first_verdict(claimant: &Claimant) -> Verdict {
    match (&claimant.newest, &claimant.before) {
        (Some(newest), _) => Verdict::Newest(newest.clone()),
        (None, Some(before)) => Verdict::Before(before.clone()),
        (None, None) => Verdict::Nothing,
    }
}

fn eliminate(claimants: &[Claimant], verdicts: &mut [Verdict], held: &Held<'_>) {
    loop {
        let losers = losers(claimants, verdicts, held);
        if losers.is_empty() {
            return;
        }
        for loser in losers {
            verdicts[loser] = next_verdict(&claimants[loser], &verdicts[loser]);
        }
    }
}

/// Each step offers less, so there is an end.
fn next_verdict(claimant: &Claimant, lost: &Verdict) -> Verdict {
    match (lost, &claimant.before) {
        (Verdict::Newest(_), Some(before)) if !claimant.shipped => Verdict::Before(before.clone()),
        _ => Verdict::Nothing,
    }
}

/// Shipped catalogs whose id a file has.
fn hidden(claimants: &[Claimant], verdicts: &[Verdict]) -> Vec<usize> {
    let of = |shipped: bool| {
        let both =
            claimants.iter().zip(verdicts).enumerate().filter(move |(_, (claimant, _))| claimant.shipped == shipped);
        both.filter_map(|(at, (_, verdict))| Some((&verdict.catalog()?.id, at)))
    };
    let files: BTreeMap<&CatalogId, usize> = of(false).collect();
    of(true).filter(|(id, _)| files.contains_key(id)).map(|(_, at)| at).collect()
}

fn losers(claimants: &[Claimant], verdicts: &[Verdict], held: &Held<'_>) -> Vec<usize> {
    let hidden = hidden(claimants, verdicts);
    let mut claims: BTreeMap<&CatalogId, Vec<usize>> = BTreeMap::new();
    for (at, verdict) in verdicts.iter().enumerate().filter(|(at, _)| !hidden.contains(at)) {
        for name in verdict.catalog().into_iter().flat_map(|catalog| names(catalog)) {
            let of_name = claims.entry(name).or_default();
            // One that lists its own id as an alias does not compete with itself.
            if of_name.last() != Some(&at) {
                of_name.push(at);
            }
        }
    }
    let mut losers: Vec<usize> = Vec::new();
    for (name, of_name) in claims.iter().filter(|(_, of_name)| of_name.len() > 1) {
        let winner = held.get(name).filter(|holder| of_name.contains(holder)).unwrap_or(&of_name[0]);
        losers.extend(of_name.iter().filter(|at| *at != winner));
    }
    losers.sort_unstable();
    losers.dedup();
    losers
}

/// One that can be let in without keeping out a file; a shipped catalog keeps no file out that holds its name.
fn fitting(claimants: &[Claimant], verdicts: &[Verdict], held: &Held<'_>) -> Option<usize> {
    let owners = owners(verdicts);
    let out = |at: &usize| claimants[*at].newest.is_some() && !matches!(verdicts[*at], Verdict::Newest(_));
    // A cheap look first: the whole comparison is made only for those that will most likely pass it.
    let may_fit = |at: &usize| {
        let mut claimed = claimants[*at].newest.iter().flat_map(|newest| names(newest));
        claimed.all(|name| owners.get(name).is_none_or(|owner| owner == at || claimants[*owner].shipped))
    };
    (0..claimants.len()).filter(out).filter(may_fit).find(|at| {
        let mut tried = verdicts.to_vec();
        tried[*at] = first_verdict(&claimants[*at]);
        let losers = losers(claimants, &tried, held);
        losers.iter().all(|loser| loser != at && claimants[*loser].shipped && !claimants[*at].shipped)
    })
}
