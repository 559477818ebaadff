//! Decides which catalog gets a name (an id or an alias) if several catalog files claim the same name.
//! Invariants: no two offered catalogs have a common name. The catalog that owned a name before keeps it, and a free
//! name is assigned to the first claim. A shipped catalog is not offered if a file has its id.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::CatalogId;

use super::claimed_names;
use crate::model::Catalog;

/// A claim: a catalog file, or a catalog shipped in the binary, with the names that it wants to have.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The catalog that the file contains now, or `None` if the text is not a valid catalog.
    pub newest: Option<Arc<Catalog>>,
    /// The catalog of this file that the registry before the reload offers.
    pub before: Option<Arc<Catalog>>,
    /// Whether the claim is a catalog shipped in the binary.
    pub shipped: bool,
}

/// The decision about one claim: which catalog of the claim is offered.
#[derive(Debug, Clone)]
pub enum ClaimResult {
    Newest(Arc<Catalog>),
    /// The catalog that was offered before the reload is still offered.
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

/// The owner of each name, as the index of a claim.
type NameOwners<'a> = BTreeMap<&'a CatalogId, usize>;

/// Decides all claims together. Returns a result for each claim, in the order of the claims.
pub fn settle_claims(claims: &[Claim]) -> Vec<ClaimResult> {
    let owners_before = owners_before(claims);
    let mut results: Vec<ClaimResult> = claims.iter().map(result_without_rivals).collect();
    lower_losing_results(claims, &mut results, &owners_before);
    // A claim may have lost a name to a claim that lost itself later. Each round restores the newest catalog of one
    // such claim.
    while let Some(number) = find_restorable_claim(claims, &results, &owners_before) {
        results[number] = result_without_rivals(&claims[number]);
        lower_losing_results(claims, &mut results, &owners_before);
    }
    for number in shipped_with_id_of_a_file(claims, &results) {
        results[number] = ClaimResult::Nothing;
    }
    results
}

/// Returns the owner of each name. The results must be final, so that each name has one owner.
pub fn name_owners(results: &[ClaimResult]) -> BTreeMap<&CatalogId, usize> {
    let winners = results.iter().enumerate().filter_map(|(number, result)| Some((number, result.catalog()?)));
    winners.flat_map(|(number, catalog)| claimed_names(catalog).map(move |name| (name, number))).collect()
}

/// Returns the owner of each name before the reload. Catalogs that are offered together share no name, so each name
/// has one owner.
fn owners_before(claims: &[Claim]) -> NameOwners<'_> {
    let before = claims.iter().enumerate().filter_map(|(number, claim)| Some((number, claim.before.as_ref()?)));
    before.flat_map(|(number, catalog)| claimed_names(catalog).map(move |name| (name, number))).collect()
}

/// Returns the result of a claim whose names no other claim wants.
fn result_without_rivals(claim: &Claim) -> ClaimResult {
    match (&claim.newest, &claim.before) {
        (Some(newest), _) => ClaimResult::Newest(newest.clone()),
        (None, Some(before)) => ClaimResult::Before(before.clone()),
        (None, None) => ClaimResult::Nothing,
    }
}

/// Lowers the results of claims that lose a name, until no two results have a common name. The loop ends because each
/// round lowers at least one result.
fn lower_losing_results(claims: &[Claim], results: &mut [ClaimResult], owners_before: &NameOwners<'_>) {
    loop {
        let losers = find_losers(claims, results, owners_before);
        if losers.is_empty() {
            return;
        }
        for loser in losers {
            results[loser] = next_lower_result(&claims[loser], &results[loser]);
        }
    }
}

/// Returns the next lower result of a claim that lost a name: the catalog from before the reload instead of the
/// newest, and then nothing.
fn next_lower_result(claim: &Claim, lost: &ClaimResult) -> ClaimResult {
    match (lost, &claim.before) {
        (ClaimResult::Newest(_), Some(before)) if !claim.shipped => ClaimResult::Before(before.clone()),
        _ => ClaimResult::Nothing,
    }
}

/// Returns the indices of the shipped catalogs whose id belongs to an offered file.
fn shipped_with_id_of_a_file(claims: &[Claim], results: &[ClaimResult]) -> Vec<usize> {
    let ids = |shipped: bool| {
        let of_kind = claims.iter().zip(results).enumerate().filter(move |(_, (claim, _))| claim.shipped == shipped);
        of_kind.filter_map(|(number, (_, result))| Some((&result.catalog()?.id, number)))
    };
    let files: NameOwners<'_> = ids(false).collect();
    ids(true).filter(|(id, _)| files.contains_key(id)).map(|(_, number)| number).collect()
}

/// Returns the indices of the claims that lose a name to another claim, in ascending order.
fn find_losers(claims: &[Claim], results: &[ClaimResult], owners_before: &NameOwners<'_>) -> Vec<usize> {
    let behind_files = shipped_with_id_of_a_file(claims, results);
    let mut rivals_by_name: BTreeMap<&CatalogId, Vec<usize>> = BTreeMap::new();
    for (number, result) in results.iter().enumerate().filter(|(number, _)| !behind_files.contains(number)) {
        for name in result.catalog().into_iter().flat_map(|catalog| claimed_names(catalog)) {
            let rivals = rivals_by_name.entry(name).or_default();
            // A catalog may list its own id as an alias, and must not become its own rival.
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

/// Returns the index of a claim whose newest catalog could be offered without taking a name from a file. A file may
/// take a name of a shipped catalog.
fn find_restorable_claim(claims: &[Claim], results: &[ClaimResult], owners_before: &NameOwners<'_>) -> Option<usize> {
    let owners = name_owners(results);
    let lacks_newest =
        |number: &usize| claims[*number].newest.is_some() && !matches!(results[*number], ClaimResult::Newest(_));
    // This check is cheap and leaves few claims. The full check below costs a pass over all claims for each remaining
    // claim.
    let may_fit = |number: &usize| {
        let mut claimed = claims[*number].newest.iter().flat_map(|newest| claimed_names(newest));
        claimed.all(|name| owners.get(name).is_none_or(|owner| owner == number || claims[*owner].shipped))
    };
    (0..claims.len()).filter(lacks_newest).filter(may_fit).find(|number| {
        let mut tried = results.to_vec();
        tried[*number] = result_without_rivals(&claims[*number]);
        let losers = find_losers(claims, &tried, owners_before);
        losers.iter().all(|loser| loser != number && claims[*loser].shipped && !claims[*number].shipped)
    })
}
