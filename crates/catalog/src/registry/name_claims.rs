//! The decision which catalog has a name, if several files claim it.
//! Invariants: no two winners share a name. The catalog that had a name before keeps it, and a free name goes to the first
//! claim. A shipped catalog gives way to a file with its id.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;

use super::names;
use crate::model::Catalog;

/// The claim of a file or of a catalog in the binary to its names.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The catalog that the file holds now, or `None` if it is not a valid catalog.
    pub newest: Option<Arc<Catalog>>,
    /// The catalog of the file that was offered until now.
    pub before: Option<Arc<Catalog>>,
    /// Whether it is a catalog in the binary.
    pub shipped: bool,
}

/// The catalog of a claim that is offered.
#[derive(Debug, Clone)]
pub enum ClaimResult {
    Newest(Arc<Catalog>),
    /// The catalog that was offered before is still offered.
    Before(Arc<Catalog>),
    Nothing,
}

impl ClaimResult {
    /// Returns the offered catalog.
    pub fn catalog(&self) -> Option<&Arc<Catalog>> {
        match self {
            ClaimResult::Newest(catalog) | ClaimResult::Before(catalog) => Some(catalog),
            ClaimResult::Nothing => None,
        }
    }
}

/// For each name, the number of the claim that has it.
type NameOwners<'a> = BTreeMap<&'a CatalogId, usize>;

/// Decides all claims and returns a result for each, in their order.
pub fn settle(claims: &[Claim]) -> Vec<ClaimResult> {
    let owners_before = owners_before(claims);
    let mut results: Vec<ClaimResult> = claims.iter().map(best_result).collect();
    eliminate(claims, &mut results, &owners_before);
    // A claim may have lost to another one that lost later. Each round gives one such claim its newest catalog again.
    while let Some(number) = claim_that_fits(claims, &results, &owners_before) {
        results[number] = best_result(&claims[number]);
        eliminate(claims, &mut results, &owners_before);
    }
    for number in shipped_behind_files(claims, &results) {
        results[number] = ClaimResult::Nothing;
    }
    results
}

/// Returns the owner of each name, among results that are settled.
pub fn owners(results: &[ClaimResult]) -> BTreeMap<&CatalogId, usize> {
    let winners = results.iter().enumerate().filter_map(|(number, result)| Some((number, result.catalog()?)));
    winners.flat_map(|(number, catalog)| names(catalog).map(move |name| (name, number))).collect()
}

/// Returns the owner of each name until now. Catalogs that are offered together share no name, so each name has one owner.
fn owners_before(claims: &[Claim]) -> NameOwners<'_> {
    let before = claims.iter().enumerate().filter_map(|(number, claim)| Some((number, claim.before.as_ref()?)));
    before.flat_map(|(number, catalog)| names(catalog).map(move |name| (name, number))).collect()
}

/// Returns the result of a claim that has no rival.
fn best_result(claim: &Claim) -> ClaimResult {
    match (&claim.newest, &claim.before) {
        (Some(newest), _) => ClaimResult::Newest(newest.clone()),
        (None, Some(before)) => ClaimResult::Before(before.clone()),
        (None, None) => ClaimResult::Nothing,
    }
}

/// Lowers the results of the losers until no two results share a name. It ends, because each round lowers at least one result.
fn eliminate(claims: &[Claim], results: &mut [ClaimResult], owners_before: &NameOwners<'_>) {
    loop {
        let losers = losers(claims, results, owners_before);
        if losers.is_empty() {
            return;
        }
        for loser in losers {
            results[loser] = lower_result(&claims[loser], &results[loser]);
        }
    }
}

/// Returns the next result after one that lost: the newest catalog, then the one before, then nothing.
fn lower_result(claim: &Claim, lost: &ClaimResult) -> ClaimResult {
    match (lost, &claim.before) {
        (ClaimResult::Newest(_), Some(before)) if !claim.shipped => ClaimResult::Before(before.clone()),
        _ => ClaimResult::Nothing,
    }
}

/// Returns the shipped catalogs whose id a file has.
fn shipped_behind_files(claims: &[Claim], results: &[ClaimResult]) -> Vec<usize> {
    let ids = |shipped: bool| {
        let of_kind = claims.iter().zip(results).enumerate().filter(move |(_, (claim, _))| claim.shipped == shipped);
        of_kind.filter_map(|(number, (_, result))| Some((&result.catalog()?.id, number)))
    };
    let files: NameOwners<'_> = ids(false).collect();
    ids(true).filter(|(id, _)| files.contains_key(id)).map(|(_, number)| number).collect()
}

/// Returns the claims that lose a name to another claim, in their order.
fn losers(claims: &[Claim], results: &[ClaimResult], owners_before: &NameOwners<'_>) -> Vec<usize> {
    let behind_files = shipped_behind_files(claims, results);
    let mut rivals_by_name: BTreeMap<&CatalogId, Vec<usize>> = BTreeMap::new();
    for (number, result) in results.iter().enumerate().filter(|(number, _)| !behind_files.contains(number)) {
        for name in result.catalog().into_iter().flat_map(|catalog| names(catalog)) {
            let rivals = rivals_by_name.entry(name).or_default();
            // A catalog that lists its own id as an alias is no rival of itself.
            if rivals.last() != Some(&number) {
                rivals.push(number);
            }
        }
    }
    let mut losers: Vec<usize> = Vec::new();
    for (name, rivals) in rivals_by_name.iter().filter(|(_, rivals)| rivals.len() > 1) {
        let winner = owners_before.get(name).filter(|owner| rivals.contains(owner)).unwrap_or(&rivals[0]);
        losers.extend(rivals.iter().filter(|number| *number != winner));
    }
    losers.sort_unstable();
    losers.dedup();
    losers
}

/// Returns a claim that could have its newest catalog without taking a name from a file. A file may take the names of a
/// shipped catalog.
fn claim_that_fits(claims: &[Claim], results: &[ClaimResult], owners_before: &NameOwners<'_>) -> Option<usize> {
    let owners = owners(results);
    let is_out =
        |number: &usize| claims[*number].newest.is_some() && !matches!(results[*number], ClaimResult::Newest(_));
    // This comparison is cheap and leaves few claims. The full one below costs a pass over all claims for each.
    let may_fit = |number: &usize| {
        let mut claimed = claims[*number].newest.iter().flat_map(|newest| names(newest));
        claimed.all(|name| owners.get(name).is_none_or(|owner| owner == number || claims[*owner].shipped))
    };
    (0..claims.len()).filter(is_out).filter(may_fit).find(|number| {
        let mut tried = results.to_vec();
        tried[*number] = best_result(&claims[*number]);
        let losers = losers(claims, &tried, owners_before);
        losers.iter().all(|loser| loser != number && claims[*loser].shipped && !claims[*number].shipped)
    })
}
