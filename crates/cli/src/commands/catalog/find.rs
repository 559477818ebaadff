//! Finds the catalog of an argument FILE|ID: a file, standard input, or the id of a catalog that the settings offer.
//! Invariant: the form of the argument alone decides whether it is a file or an id. Whether a file of this name exists has no influence.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use base::similar_names;
use catalog::Catalog;

use crate::args::{CatalogFolders, Settings};
use crate::catalogs::Catalogs;
use crate::config::{Config, read_text};
use crate::failure::Failure;

/// Reads the settings of a command that stores no data and therefore also runs without a data folder.
pub fn read_config(config_file: Option<&Path>, folders: &CatalogFolders) -> Result<Config, Failure> {
    let CatalogFolders { catalogs, no_demo } = folders.clone();
    let settings = Settings { catalogs, no_demo, ..Settings::default() };
    match Config::read(config_file, &settings) {
        // The command reads only the encrypted secrets from the data folder, so any folder without such a file is sufficient.
        Err(Failure::NoDataFolder) => {
            Config::read(config_file, &Settings { data: Some(std::env::temp_dir()), ..settings })
        }
        result => result,
    }
}

/// Finds the catalog of an argument FILE|ID.
pub fn find_catalog(config: &Config, name: &str) -> Result<Arc<Catalog>, Failure> {
    if is_file(name) {
        let CatalogText { name, text } = read_text_of(Path::new(name))?;
        return Ok(Arc::new(catalog::read(&name, &text)?));
    }
    let registry = Catalogs::load(config)?.registry();
    registry.get(name).cloned().ok_or_else(|| {
        let ids = registry.iter().map(|c| c.id.as_str());
        Failure::NoCatalog { name: name.to_owned(), near: similar_names(name, ids) }
    })
}

/// The text of a catalog before it is parsed.
pub struct CatalogText {
    /// The path of the file, or `<stdin>`. Messages use this name.
    pub name: String,
    pub text: String,
}

/// Reads the text of a catalog from a file, or from standard input if the path is `-`.
pub fn read_text_of(path: &Path) -> Result<CatalogText, Failure> {
    if path.as_os_str() != "-" {
        return Ok(CatalogText { name: path.display().to_string(), text: read_text(path)? });
    }
    let mut bytes = Vec::new();
    let unreadable = |cause| Failure::Unreadable { path: "standard input".into(), cause };
    std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
    let text = crate::config::decode_text(Path::new("standard input"), bytes)?;
    Ok(CatalogText { name: "<stdin>".to_owned(), text })
}

fn is_file(name: &str) -> bool {
    name == "-" || name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml")
}

#[cfg(test)]
mod tests {
    use super::is_file;

    #[test]
    fn the_form_of_an_argument_says_whether_it_is_a_file() {
        assert!(["-", "a.yaml", "a.yml", "./a", "/x/y", "a/b"].into_iter().all(is_file));
        assert!(!["demo", "git-hub", "a.b", "yaml"].into_iter().any(is_file));
    }
}
