//! What a session's names and symbols mean: `e1`, `Ticket`, `demo:Ticket`, `p7`, `state`, `r2`, `comments`.
//! Invariant: a symbol means one thing for the life of the session; what is not in the scope cannot be named by a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::similar_names;
use catalog::{Capability, Catalog, Entity, Field, Param, Registry, Relation};
use smol_str::SmolStr;

use crate::syntax::tree::EntityName;

/// Built by `teach` from the session's ledger.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub entities: Vec<ExposedEntity>,
    /// What `p1`, `p2` and so on name: the same name and type everywhere in one catalog.
    pub slots: SlotSymbols,
    /// What `now` means: the moment at which the program is planned.
    pub now: Option<base::Timestamp>,
    /// The slot that handles of this session begin with.
    pub slot: Option<base::Slot>,
    /// What the caller could be taught, for whoever names something that was not.
    pub registry: Option<Arc<Registry>>,
}

/// An entity that the session was taught.
#[derive(Debug, Clone)]
pub struct ExposedEntity {
    pub symbol: String,
    pub catalog: Arc<Catalog>,
    pub entity: String,
    /// Relations whose target is exposed too: symbol to wire name.
    pub relations: BTreeMap<String, String>,
    /// What the session may call on it: symbol to the capability's name.
    pub methods: BTreeMap<String, String>,
}

/// `p1` is the first. A list and no map: a session of a large API has thousands, and looks a few of them up.
#[derive(Debug, Clone, Default)]
pub struct SlotSymbols(Vec<SlotMeaning>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotMeaning {
    pub catalog: base::CatalogId,
    pub name: SmolStr,
}

impl SlotSymbols {
    /// By its symbol.
    pub fn get(&self, symbol: &str) -> Option<&SlotMeaning> {
        let digits = symbol.strip_prefix('p').filter(|digits| !digits.starts_with(['0', '+']))?;
        self.0.get(digits.parse::<usize>().ok()?.checked_sub(1)?)
    }

    /// Each with its symbol.
    pub fn iter(&self) -> impl Iterator<Item = (String, &SlotMeaning)> {
        self.0.iter().zip(1..).map(|(meaning, n)| (format!("p{n}"), meaning))
    }

    /// The first symbol of a name.
    fn symbol(&self, catalog: &Catalog, name: &str) -> Option<String> {
        let at = self.0.iter().position(|m| m.name == name && m.catalog == catalog.id)?;
        Some(format!("p{}", at + 1))
    }
}

impl FromIterator<SlotMeaning> for SlotSymbols {
    fn from_iter<T: IntoIterator<Item = SlotMeaning>>(slots: T) -> Self {
        Self(slots.into_iter().collect())
    }
}

/// The alphabet an author used, and is answered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameStyle {
    Symbols,
    Names,
}

impl NameStyle {
    /// The style that a name was written in.
    pub(crate) fn of(text: &str) -> Self {
        if looks_like_symbol(text) { NameStyle::Symbols } else { NameStyle::Names }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum EntityLookupError {
    /// Nothing of that name; near ones in the author's alphabet.
    Unknown(Vec<String>),
    /// Several catalogs have it; the names that tell them apart.
    Ambiguous(Vec<String>),
    /// These have it and were not taught.
    UntaughtEntity(Vec<UntaughtEntity>),
}

/// An entity that a seed would add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntaughtEntity {
    pub catalog: base::CatalogId,
    pub entity: String,
}

impl ExposedEntity {
    /// The catalog's own description. An exposed entity is one of its catalog's; were it not, it has no fields.
    pub fn definition(&self) -> Option<&Entity> {
        self.catalog.entity(&self.entity)
    }

    pub fn styled_name(&self, style: NameStyle) -> &str {
        match style {
            NameStyle::Symbols => &self.symbol,
            NameStyle::Names => &self.entity,
        }
    }
}

impl Scope {
    pub fn entity(&self, name: &EntityName) -> Result<&ExposedEntity, EntityLookupError> {
        let wanted = name.name.text.as_str();
        // A symbol says where it stands, unless something before it is not there for this caller.
        let number = wanted.strip_prefix('e').and_then(|n| n.parse::<usize>().ok()).filter(|_| name.catalog.is_none());
        if let Some(exposed) = number.and_then(|n| self.entities.get(n.wrapping_sub(1))).filter(|e| e.symbol == wanted)
        {
            return Ok(exposed);
        }
        let in_catalog = |e: &&ExposedEntity| match &name.catalog {
            Some(catalog) => {
                e.catalog.id.as_str() == catalog.text || e.catalog.aliases.iter().any(|a| a.as_str() == catalog.text)
            }
            None => true,
        };
        let named = |e: &&ExposedEntity| e.symbol == wanted || e.entity == wanted;
        let mut found = self.entities.iter().filter(in_catalog).filter(named);
        match (found.next(), found.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(EntityLookupError::Ambiguous(self.qualified(wanted))),
            (None, _) => {
                let alike = |e: &&ExposedEntity| e.entity.eq_ignore_ascii_case(wanted);
                only(self.entities.iter().filter(in_catalog).filter(alike)).ok_or_else(|| match self.untaught(name) {
                    none if none.is_empty() => EntityLookupError::Unknown(self.near_entities(wanted)),
                    found => EntityLookupError::UntaughtEntity(found),
                })
            }
        }
    }

    /// Who has an entity of that name, among the session's own catalogs and those it could have.
    fn untaught(&self, name: &EntityName) -> Vec<UntaughtEntity> {
        let mut catalogs: BTreeMap<&base::CatalogId, &Catalog> = BTreeMap::new();
        for catalog in self.registry.iter().flat_map(|r| r.iter()).chain(self.entities.iter().map(|e| &e.catalog)) {
            // What the session pinned comes last, and is what a seed would be taken from.
            catalogs.insert(&catalog.id, catalog);
        }
        let called = |catalog: &&&Catalog| match &name.catalog {
            Some(id) => catalog.id.as_str() == id.text || catalog.aliases.iter().any(|a| a.as_str() == id.text),
            None => true,
        };
        let wanted = name.name.text.as_str();
        let find = |same: fn(&str, &str) -> bool| -> Vec<UntaughtEntity> {
            let of = |c: &&Catalog| {
                let entity = c.offered().find(|e| same(&e.name, wanted))?;
                Some(UntaughtEntity { catalog: c.id.clone(), entity: entity.name.clone() })
            };
            catalogs.values().filter(called).filter_map(of).take(5).collect()
        };
        match find(|a, b| a == b) {
            none if none.is_empty() => find(|a, b| a.eq_ignore_ascii_case(b)),
            found => found,
        }
    }

    fn qualified(&self, name: &str) -> Vec<String> {
        let same = self.entities.iter().filter(|e| e.entity == name);
        same.map(|e| format!("{}:{} ({})", e.catalog.id, e.entity, e.symbol)).collect()
    }

    fn near_entities(&self, wanted: &str) -> Vec<String> {
        let symbolic = looks_like_symbol(wanted);
        let names: Vec<&str> =
            self.entities.iter().map(|e| if symbolic { e.symbol.as_str() } else { e.entity.as_str() }).collect();
        similar_names(wanted, names)
    }

    pub fn find_exposed(&self, catalog: &Catalog, entity: &str) -> Option<&ExposedEntity> {
        self.entities.iter().find(|e| e.entity == entity && e.catalog.id == catalog.id)
    }

    /// The wire name a slot means within a catalog: `p7` through the ledger, anything else as it is.
    pub fn wire_name<'a>(&'a self, catalog: &Catalog, text: &'a str) -> &'a str {
        // Nearly every slot is written by its name; looking each up was a twentieth of checking.
        if !looks_like_symbol(text) {
            return text;
        }
        match self.slots.get(text) {
            Some(meaning) if meaning.catalog == catalog.id => &meaning.name,
            _ => text,
        }
    }

    pub fn field<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Field> {
        let (fields, name) = (&exposed.definition()?.fields, self.wire_name(&exposed.catalog, text));
        fields.get(name).or_else(|| only(fields.values().filter(|f| f.name.eq_ignore_ascii_case(name))))
    }

    pub fn relation<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Relation> {
        let written = exposed.relations.get(text).map_or(text, String::as_str);
        let alike = || only(exposed.relations.values().filter(|r| r.eq_ignore_ascii_case(written)));
        let taught = exposed.relations.values().find(|r| *r == written).or_else(alike)?;
        exposed.definition()?.relations.get(taught)
    }

    /// `m3`, the capability's name, or that without the entity's; `-` and `_` are the same.
    pub fn method<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Capability> {
        let capability = |name: &String| exposed.catalog.capability(name);
        if let Some(name) = exposed.methods.get(text) {
            return capability(name);
        }
        let taught = || exposed.methods.values().filter_map(capability);
        only(taught().filter(|c| alike(&c.name, text)))
            .or_else(|| only(taught().filter(|c| alike(c.method_name(), text))))
    }

    /// A method in the author's alphabet: `m3`, or `close`.
    pub fn styled_method(&self, exposed: &ExposedEntity, capability: &Capability, style: NameStyle) -> String {
        let symbol = exposed.methods.iter().find(|(_, name)| **name == capability.name).map(|(symbol, _)| symbol);
        match (style, symbol) {
            (NameStyle::Symbols, Some(symbol)) => symbol.clone(),
            _ => capability.method_name().to_owned(),
        }
    }

    pub fn param<'a>(
        &self,
        catalog: &Catalog,
        params: impl IntoIterator<Item = &'a Param, IntoIter: Clone>,
        text: &str,
    ) -> Option<&'a Param> {
        let name = self.wire_name(catalog, text);
        let mut params = params.into_iter();
        let alike = only(params.clone().filter(|p| p.name.eq_ignore_ascii_case(name)));
        // One that is like it may be it.
        alike.or_else(|| params.find(|p| p.name == name))
    }

    /// A slot in the author's alphabet: `state`, or `p3 state` so that both can be copied.
    pub fn styled_slot(&self, catalog: &Catalog, name: &str, style: NameStyle) -> String {
        let symbol = match style {
            NameStyle::Symbols => self.slots.symbol(catalog, name),
            NameStyle::Names => None,
        };
        symbol.unwrap_or_else(|| name.to_owned())
    }
}

/// Another case of a name is surely meant when only one name is like it.
fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Whether two names of methods are the same, whatever the case; `-` and `_` are the same.
fn alike(one: &str, other: &str) -> bool {
    let plain = |b: u8| if b == b'-' { b'_' } else { b.to_ascii_lowercase() };
    one.len() == other.len() && one.bytes().map(plain).eq(other.bytes().map(plain))
}

/// `e1`, `m12`, `p3`, `r4`: what a label must not look like.
pub fn looks_like_symbol(text: &str) -> bool {
    let mut chars = text.chars();
    matches!(chars.next(), Some('e' | 'm' | 'p' | 'r' | 's'))
        && !chars.as_str().is_empty()
        && chars.all(|c| c.is_ascii_digit())
}
