//! Resolves the names and symbols of a session: `e1`, `Ticket`, `demo:Ticket`, `p7`, `state`, `r2`, `comments`.
//! Invariant: a symbol keeps its meaning for the life of the session. A program can only name what is in the scope.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::similar_names;
use catalog::{Capability, Catalog, Entity, Field, Param, Registry, Relation};
use smol_str::SmolStr;

use crate::syntax::tree::EntityName;

/// The names that a program may use. `teach` builds the scope from the session's ledger.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The entities that the session was taught, in the order of their symbols.
    pub entities: Vec<ExposedEntity>,
    /// The slots that `p1`, `p2` and so on name. In one catalog, a slot has the same name and type everywhere.
    pub slots: SlotSymbols,
    /// The moment that `now` means: the time at which the program is planned.
    pub now: Option<base::Timestamp>,
    /// The slot that handles of this session begin with.
    pub slot: Option<base::Slot>,
    /// The catalogs that the caller could be taught, for a correction when a program names an entity that was not
    /// taught.
    pub registry: Option<Arc<Registry>>,
}

/// An entity that the session was taught.
#[derive(Debug, Clone)]
pub struct ExposedEntity {
    /// Its symbol, such as `e1`.
    pub symbol: String,
    /// The catalog that the session pinned.
    pub catalog: Arc<Catalog>,
    /// Its name in the catalog.
    pub entity: String,
    /// The relations whose target is exposed, too: symbol to the relation's name.
    pub relations: BTreeMap<String, String>,
    /// The methods that the session may call on it: symbol to the capability's name.
    pub methods: BTreeMap<String, String>,
}

/// The slots of the session. `p1` is the first. They are a list and no map, because the session of a large API has
/// thousands and a program looks up a few.
#[derive(Debug, Clone, Default)]
pub struct SlotSymbols(Vec<SlotMeaning>);

/// The slot that a symbol names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotMeaning {
    pub catalog: base::CatalogId,
    pub name: SmolStr,
}

impl SlotSymbols {
    /// Returns the slot of a symbol.
    pub fn get(&self, symbol: &str) -> Option<&SlotMeaning> {
        let digits = symbol.strip_prefix('p').filter(|digits| !digits.starts_with(['0', '+']))?;
        self.0.get(digits.parse::<usize>().ok()?.checked_sub(1)?)
    }

    /// Iterates over the slots with their symbols.
    pub fn iter(&self) -> impl Iterator<Item = (String, &SlotMeaning)> {
        self.0.iter().zip(1..).map(|(meaning, n)| (format!("p{n}"), meaning))
    }

    /// Returns the first symbol of a name in a catalog.
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

/// The kind of names that an author used, which corrections use, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameStyle {
    /// Symbols, such as `e1` and `p3`.
    Symbols,
    /// Names, such as `Ticket` and `state`.
    Names,
}

impl NameStyle {
    /// Returns the style that a name was written in.
    pub(crate) fn of(text: &str) -> Self {
        if looks_like_symbol(text) { NameStyle::Symbols } else { NameStyle::Names }
    }
}

/// The reason why a name is not an entity of the scope.
#[derive(Debug, PartialEq, Eq)]
pub enum EntityLookupError {
    /// No entity has the name. Similar names are given in the author's style.
    Unknown(Vec<String>),
    /// Several catalogs have it. The qualified names are given.
    Ambiguous(Vec<String>),
    /// The session was not taught the entity, and these catalogs have it.
    UntaughtEntity(Vec<UntaughtEntity>),
}

/// An entity that a seed would add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntaughtEntity {
    pub catalog: base::CatalogId,
    pub entity: String,
}

impl ExposedEntity {
    /// Returns the catalog's description of the entity. An exposed entity is always in its catalog.
    pub fn definition(&self) -> Option<&Entity> {
        self.catalog.entity(&self.entity)
    }

    /// Returns the symbol or the name of the entity.
    pub fn styled_name(&self, style: NameStyle) -> &str {
        match style {
            NameStyle::Symbols => &self.symbol,
            NameStyle::Names => &self.entity,
        }
    }
}

impl Scope {
    /// Finds the entity of a name or a symbol, in any case if only one entity is meant.
    pub fn entity(&self, name: &EntityName) -> Result<&ExposedEntity, EntityLookupError> {
        let wanted = name.name.text.as_str();
        // The number of a symbol is the position of its entity, unless an entity before it is hidden from this caller.
        // The common case needs no search.
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
        let has_name = |e: &&ExposedEntity| e.symbol == wanted || e.entity == wanted;
        let mut matches = self.entities.iter().filter(in_catalog).filter(has_name);
        match (matches.next(), matches.next()) {
            (Some(only), None) => Ok(only),
            (Some(_), Some(_)) => Err(EntityLookupError::Ambiguous(self.qualified(wanted))),
            (None, _) => {
                let alike = |e: &&ExposedEntity| e.entity.eq_ignore_ascii_case(wanted);
                only(self.entities.iter().filter(in_catalog).filter(alike)).ok_or_else(|| match self.untaught(name) {
                    none if none.is_empty() => EntityLookupError::Unknown(self.near_entities(wanted)),
                    matches => EntityLookupError::UntaughtEntity(matches),
                })
            }
        }
    }

    /// Finds the catalogs with an entity of that name, among those that the session pinned and those that it could pin.
    fn untaught(&self, name: &EntityName) -> Vec<UntaughtEntity> {
        let mut catalogs: BTreeMap<&base::CatalogId, &Catalog> = BTreeMap::new();
        for catalog in self.registry.iter().flat_map(|r| r.iter()).chain(self.entities.iter().map(|e| &e.catalog)) {
            // The pinned version replaces the offered one, because a seed is taken from the pinned version.
            catalogs.insert(&catalog.id, catalog);
        }
        let is_catalog = |catalog: &&&Catalog| match &name.catalog {
            Some(id) => catalog.id.as_str() == id.text || catalog.aliases.iter().any(|a| a.as_str() == id.text),
            None => true,
        };
        let wanted = name.name.text.as_str();
        let find_untaught = |names_equal: fn(&str, &str) -> bool| -> Vec<UntaughtEntity> {
            let of = |c: &&Catalog| {
                let entity = c.offered().find(|e| names_equal(&e.name, wanted))?;
                Some(UntaughtEntity { catalog: c.id.clone(), entity: entity.name.clone() })
            };
            catalogs.values().filter(is_catalog).filter_map(of).take(5).collect()
        };
        match find_untaught(|a, b| a == b) {
            none if none.is_empty() => find_untaught(|a, b| a.eq_ignore_ascii_case(b)),
            matches => matches,
        }
    }

    /// Lists the entities of a name with their catalogs and symbols.
    fn qualified(&self, name: &str) -> Vec<String> {
        let entities = self.entities.iter().filter(|e| e.entity == name);
        entities.map(|e| format!("{}:{} ({})", e.catalog.id, e.entity, e.symbol)).collect()
    }

    /// Lists the entities with a similar name, or a similar symbol.
    fn near_entities(&self, wanted: &str) -> Vec<String> {
        let symbolic = looks_like_symbol(wanted);
        let names: Vec<&str> =
            self.entities.iter().map(|e| if symbolic { e.symbol.as_str() } else { e.entity.as_str() }).collect();
        similar_names(wanted, names)
    }

    /// Finds an exposed entity by its catalog and name.
    pub fn find_exposed(&self, catalog: &Catalog, entity: &str) -> Option<&ExposedEntity> {
        self.entities.iter().find(|e| e.entity == entity && e.catalog.id == catalog.id)
    }

    /// Returns the API's name of a slot in a catalog: that of a symbol such as `p7`, or the text itself.
    pub fn wire_name<'a>(&'a self, catalog: &Catalog, text: &'a str) -> &'a str {
        // Nearly every slot is written by its name. The look-up of each took a twentieth of the time of checking.
        if !looks_like_symbol(text) {
            return text;
        }
        match self.slots.get(text) {
            Some(meaning) if meaning.catalog == catalog.id => &meaning.name,
            _ => text,
        }
    }

    /// Finds a field of an entity, in any case if only one field is meant.
    pub fn field<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Field> {
        let fields = &exposed.definition()?.fields;
        let name = self.wire_name(&exposed.catalog, text);
        fields.get(name).or_else(|| only(fields.values().filter(|f| f.name.eq_ignore_ascii_case(name))))
    }

    /// Finds a relation that the session was taught, by its symbol or its name.
    pub fn relation<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Relation> {
        let written = exposed.relations.get(text).map_or(text, String::as_str);
        let alike = || only(exposed.relations.values().filter(|r| r.eq_ignore_ascii_case(written)));
        let taught = exposed.relations.values().find(|r| *r == written).or_else(alike)?;
        exposed.definition()?.relations.get(taught)
    }

    /// Finds a method that the session was taught, by its symbol, its capability's name, or that name without the
    /// entity's. `-` and `_` are the same.
    pub fn method<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Capability> {
        let capability = |name: &String| exposed.catalog.capability(name);
        if let Some(name) = exposed.methods.get(text) {
            return capability(name);
        }
        let taught = || exposed.methods.values().filter_map(capability);
        only(taught().filter(|c| alike(&c.name, text)))
            .or_else(|| only(taught().filter(|c| alike(c.method_name(), text))))
    }

    /// Returns the name of a method in the author's style: `m3` or `close`.
    pub fn styled_method(&self, exposed: &ExposedEntity, capability: &Capability, style: NameStyle) -> String {
        let symbol = exposed.methods.iter().find(|(_, name)| **name == capability.name).map(|(symbol, _)| symbol);
        match (style, symbol) {
            (NameStyle::Symbols, Some(symbol)) => symbol.clone(),
            _ => capability.method_name().to_owned(),
        }
    }

    /// Finds a parameter by its slot, in any case if only one parameter is meant.
    pub fn param<'a>(
        &self,
        catalog: &Catalog,
        params: impl IntoIterator<Item = &'a Param, IntoIter: Clone>,
        text: &str,
    ) -> Option<&'a Param> {
        let name = self.wire_name(catalog, text);
        let mut params = params.into_iter();
        let alike = only(params.clone().filter(|p| p.name.eq_ignore_ascii_case(name)));
        // If several differ in case only, the exact name decides.
        alike.or_else(|| params.find(|p| p.name == name))
    }

    /// Returns the name of a slot in the author's style: `p3` or `state`. A slot without a symbol has its name in both.
    pub fn styled_slot(&self, catalog: &Catalog, name: &str, style: NameStyle) -> String {
        let symbol = match style {
            NameStyle::Symbols => self.slots.symbol(catalog, name),
            NameStyle::Names => None,
        };
        symbol.unwrap_or_else(|| name.to_owned())
    }
}

/// Returns the item if there is exactly one. A name in another case is accepted only if it can mean one thing.
fn only<T>(mut matches: impl Iterator<Item = T>) -> Option<T> {
    let first = matches.next()?;
    matches.next().is_none().then_some(first)
}

/// Returns whether two names of methods are equal, in any case and with `-` and `_` the same.
fn alike(one: &str, other: &str) -> bool {
    let plain = |b: u8| if b == b'-' { b'_' } else { b.to_ascii_lowercase() };
    one.len() == other.len() && one.bytes().map(plain).eq(other.bytes().map(plain))
}

/// Returns whether a text looks like a symbol: `e1`, `m12`, `p3`, `r4`. A label must not.
pub fn looks_like_symbol(text: &str) -> bool {
    let mut chars = text.chars();
    matches!(chars.next(), Some('e' | 'm' | 'p' | 'r' | 's'))
        && !chars.as_str().is_empty()
        && chars.all(|c| c.is_ascii_digit())
}
