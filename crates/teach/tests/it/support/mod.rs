//! Support for the tests: the catalogs, and the parser of `plasm_context` calls in golden cases.

use std::sync::Arc;

use base::CatalogId;
use teach::{Catalogs, Seed, SlotStyle, TeachRequest, Teaching};

/// Returns the shipped catalogs, the catalogs of `tests/catalogs`, and a copy of `demo` with another id.
pub fn catalogs() -> Catalogs {
    let folders = ["../../catalogs", "../../tests/catalogs"];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let yaml = files.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let mut texts: Vec<String> = yaml.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.push(include_str!("../../../../../catalogs/demo.yaml").replace("catalog: demo", "catalog: other"));
    texts.push(include_str!("odd.yaml").to_owned());
    let read = |text: String| catalog::read("shipped.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}"));
    texts.into_iter().map(read).map(|c| (c.id.clone(), Arc::new(c))).collect()
}

/// A call in the notation of golden cases: `style=names "close stale tickets" demo:Ticket demo:Person+* rank=ticket_close`. The
/// quoted text is the intent.
#[derive(Debug, Default)]
pub struct ContextCall {
    pub intent: Option<String>,
    pub seeds: Vec<Seed>,
    pub ranked: Vec<String>,
    pub style: SlotStyle,
}

impl ContextCall {
    pub fn parse(line: &str, catalogs: &Catalogs) -> Self {
        let mut call = Self { style: SlotStyle::Symbols, ..Self::default() };
        let mut rest = line.to_owned();
        if let Some((before, after)) = line.split_once('"') {
            let (intent, after) = after.split_once('"').unwrap();
            call.intent = Some(intent.to_owned());
            rest = format!("{before} {after}");
        }
        for word in rest.split_whitespace() {
            match word.split_once('=') {
                Some(("rank", name)) => call.ranked.push(name.to_owned()),
                Some(("style", "names")) => call.style = SlotStyle::Names,
                Some(_) => panic!("{word}"),
                None => call.seeds.extend(expanded(seed(word), catalogs)),
            }
        }
        call
    }

    pub fn request(&self) -> TeachRequest<'_> {
        let threshold = Teaching::default().writes;
        TeachRequest { seeds: &self.seeds, ranked: &self.ranked, intent: self.intent.as_deref(), threshold }
    }
}

/// Replaces the seed `demo:*` by one seed for each entity of the catalog.
fn expanded(seed: Seed, catalogs: &Catalogs) -> Vec<Seed> {
    if seed.entity != "*" {
        return vec![seed];
    }
    catalogs[&seed.catalog].entities.keys().map(|entity| Seed { entity: entity.clone(), ..seed.clone() }).collect()
}

/// Parses a seed of the form `demo:Ticket`, `demo:Ticket+*` or `demo:Ticket+ticket_close+ticket_open`.
pub fn seed(word: &str) -> Seed {
    let (api, entity) = word.split_once(':').unwrap();
    let mut parts = entity.split('+');
    let mut seed = Seed::new(CatalogId::parse(api).unwrap(), parts.next().unwrap());
    seed.capabilities = parts.map(str::to_owned).collect();
    seed
}

pub fn seeds(words: &str) -> Vec<Seed> {
    words.split_whitespace().map(seed).collect()
}
