//! The catalogs inside the binary: every file of `catalogs/`.
//! Invariant: all of them are offered, whether or not their secrets are set; an operator's catalog of the same name goes before
//! the shipped one.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::CatalogId;
use catalog::Catalog;

use crate::failure::Failure;

macro_rules! shipped {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../../catalogs/", $id, ".yaml")))),*]
    };
}

/// Id and text.
const SHIPPED: &[(&str, &str)] = shipped![
    "demo" "demo-store" "github" "gitlab" "hackernews" "hackernews-search" "jira" "linear" "notion" "open-meteo"
    "open-meteo-places" "openlibrary" "pokeapi" "slack" "stripe" "wikipedia"
];

/// Those that need the demo API, which the binary itself serves.
const OF_THE_DEMO: [&str; 2] = ["demo", "demo-store"];

/// Every shipped catalog whose names none of the operator's claims.
pub fn beside(own: &[Arc<Catalog>], demo: bool) -> Result<Vec<Arc<Catalog>>, Failure> {
    let taken: BTreeSet<&CatalogId> = own.iter().flat_map(|c| std::iter::once(&c.id).chain(&c.aliases)).collect();
    let mut out = Vec::new();
    for (id, text) in SHIPPED.iter().filter(|(id, _)| demo || !OF_THE_DEMO.contains(id)) {
        let catalog = read(id, text)?;
        if !std::iter::once(&catalog.id).chain(&catalog.aliases).any(|name| taken.contains(name)) {
            out.push(catalog);
        }
    }
    Ok(out)
}

pub fn is_shipped(id: &CatalogId) -> bool {
    SHIPPED.iter().any(|(shipped, _)| *shipped == id.as_str())
}

fn read(id: &str, text: &str) -> Result<Arc<Catalog>, Failure> {
    Ok(Arc::new(catalog::read(&format!("{id}.yaml"), text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogs");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut ids: Vec<String> = files
            .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        ids.sort();
        assert_eq!(ids, SHIPPED.iter().map(|(id, _)| (*id).to_owned()).collect::<Vec<_>>());
    }

    #[test]
    fn an_operators_catalog_goes_before_the_shipped_one() {
        let all = beside(&[], true).unwrap();
        assert_eq!(all.len(), SHIPPED.len());
        assert_eq!(beside(&[], false).unwrap().len(), SHIPPED.len() - 2);
        let text = SHIPPED[0].1.replace("catalog: demo", "catalog: gh");
        let own = [read("gh", &text).unwrap()];
        let left = beside(&own, true).unwrap();
        assert!(left.len() == SHIPPED.len() - 1 && left.iter().all(|c| c.id.as_str() != "github"), "`gh` is its alias");
    }
}
