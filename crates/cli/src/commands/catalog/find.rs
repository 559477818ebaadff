//! The catalog that a command is about: a file, standard input, or an id of those that the settings offer.
//! Invariant: which of them is meant is seen from the argument alone, not from what lies in the folder.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use base::similar_names;
use catalog::Catalog;

use crate::args::{Folders, Settings};
use crate::catalogs::Catalogs;
use crate::config::{Config, read_text};
use crate::failure::Failure;

/// The settings of a command that keeps nothing.
pub fn config(file: Option<&Path>, folders: &Folders) -> Result<Config, Failure> {
    let Folders { catalogs, no_demo } = folders.clone();
    let settings = Settings { catalogs, no_demo, ..Settings::default() };
    match Config::read(file, &settings) {
        // Only the encrypted secrets would be looked for there; nothing is kept.
        Err(Failure::NoDataFolder) => Config::read(file, &Settings { data: Some(std::env::temp_dir()), ..settings }),
        read => read,
    }
}

pub fn catalog(config: &Config, name: &str) -> Result<Arc<Catalog>, Failure> {
    if is_file(name) {
        let (name, text) = text(Path::new(name))?;
        return Ok(Arc::new(catalog::read(&name, &text)?));
    }
    let registry = Catalogs::load(config)?.registry();
    registry.get(name).cloned().ok_or_else(|| {
        let ids = registry.iter().map(|c| c.id.as_str());
        Failure::NoCatalog { name: name.to_owned(), near: similar_names(name, ids) }
    })
}

/// What a catalog's text is called in messages, and the text.
pub fn text(path: &Path) -> Result<(String, String), Failure> {
    if path.as_os_str() != "-" {
        return Ok((path.display().to_string(), read_text(path)?));
    }
    let mut bytes = Vec::new();
    let unreadable = |cause| Failure::Unreadable { path: "standard input".into(), cause };
    std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
    let text = crate::config::text_of(Path::new("standard input"), bytes)?;
    Ok(("<stdin>".to_owned(), text))
}

fn is_file(name: &str) -> bool {
    name == "-" || name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml")
}

#[cfg(test)]
mod tests {
    use super::is_file;

    #[test]
    fn files_and_ids_are_told_apart_by_how_they_are_written() {
        assert!(["-", "a.yaml", "a.yml", "./a", "/x/y", "a/b"].into_iter().all(is_file));
        assert!(!["demo", "git-hub", "a.b", "yaml"].into_iter().any(is_file));
    }
}
