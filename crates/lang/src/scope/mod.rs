//! Resolves the names and symbols of a session, such as `e1`, `Ticket`, `demo:Ticket`, `p7`, `state`, `r2` and
//! `comments`.
//! Invariant: a symbol keeps its meaning for the life of the session. A program can only name what the scope contains.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::similar_names;
use catalog::{Capability, Catalog, Entity, Field, Param, Registry, Relation};
use smol_str::SmolStr;

use crate::syntax::tree::EntityName;

/// The names that a program may use. Crate `teach` builds the scope from the session's ledger.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The entities that the session was taught, in the order of their symbols.
    pub entities: Vec<ExposedEntity>,
    /// The slots that the symbols `p1`, `p2` and so on mean. Within one catalog, a slot has one name and one type
    /// everywhere.
    pub slots: SlotSymbols,
    /// The moment that `now` means, which is the time at which the program is planned.
    pub now: Option<base::Timestamp>,
    /// The session slot (`s0`, `s1`) with which the handles of this session begin.
    pub session_slot: Option<base::Slot>,
    /// The catalogs that this caller may be taught from. Corrections use it for entities that the session was not
    /// taught.
    pub registry: Option<Arc<Registry>>,
}

/// An entity that the session was taught.
#[derive(Debug, Clone)]
pub struct ExposedEntity {
    /// The symbol of the entity, such as `e1`.
    pub symbol: String,
    /// The pinned catalog that declares the entity.
    pub catalog: Arc<Catalog>,
    /// The name of the entity in the catalog.
    pub entity: String,
    /// The taught relations, from symbol to relation name. The target of each relation was taught as well.
    pub relations: BTreeMap<String, String>,
    /// The taught methods, from symbol to capability name.
    pub methods: BTreeMap<String, String>,
}

/// The slots of the session, where `p1` is the first. This is a list rather than a map, because a session with a large
/// API has thousands of slots and a program looks up a few.
#[derive(Debug, Clone, Default)]
pub struct SlotSymbols(Vec<SlotMeaning>);

/// The slot that a symbol such as `p7` means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotMeaning {
    pub catalog: base::CatalogId,
    pub name: SmolStr,
}

impl SlotSymbols {
    /// Returns the slot that a symbol means.
    pub fn get(&self, symbol: &str) -> Option<&SlotMeaning> {
        let digits = symbol.strip_prefix('p').filter(|digits| !digits.starts_with(['0', '+']))?;
        self.0.get(digits.parse::<usize>().ok()?.checked_sub(1)?)
    }

    /// Iterates over the slots with their symbols.
    pub fn iter(&self) -> impl Iterator<Item = (String, &SlotMeaning)> {
        self.0.iter().zip(1..).map(|(meaning, n)| (format!("p{n}"), meaning))
    }

    /// Returns the first symbol of a slot name in a catalog.
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

/// The kind of names that the author used. Corrections use the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameStyle {
    /// Symbols, such as `e1` and `p3`.
    Symbols,
    /// Names, such as `Ticket` and `state`.
    Names,
}

impl NameStyle {
    /// Returns the style of a written name.
    pub(crate) fn of(text: &str) -> Self {
        if looks_like_symbol(text) { NameStyle::Symbols } else { NameStyle::Names }
    }
}

/// The reason why a name does not resolve to an entity of the scope.
#[derive(Debug, PartialEq, Eq)]
pub enum EntityLookupError {
    /// No entity has the name. The list has similar names in the author's style.
    Unknown(Vec<String>),
    /// Several catalogs have an entity of this name. The list has their qualified names.
    Ambiguous(Vec<String>),
    /// The session was not taught the entity. The list has the catalogs that declare it.
    UntaughtEntity(Vec<UntaughtEntity>),
}

/// An entity that the session does not know but that a seed would add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntaughtEntity {
    pub catalog: base::CatalogId,
    pub entity: String,
}

impl ExposedEntity {
    /// Returns the catalog's definition of the entity. The catalog of an exposed entity always declares it.
    pub fn definition(&self) -> Option<&Entity> {
        self.catalog.entity(&self.entity)
    }

    /// Returns the symbol or the name of the entity, depending on the style.
    pub fn styled_name(&self, style: NameStyle) -> &str {
        match style {
            NameStyle::Symbols => &self.symbol,
            NameStyle::Names => &self.entity,
        }
    }
}

impl Scope {
    /// Finds the entity of a name or symbol. The case of a name is ignored if only one entity matches.
    pub fn entity(&self, name: &EntityName) -> Result<&ExposedEntity, EntityLookupError> {
        let wanted = name.name.text.as_str();
        // The number in a symbol is the position of the entity, except if an earlier entity is hidden from this
        // caller. Checking the position first avoids a search in the common case.
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
            (Some(only_item), None) => Ok(only_item),
            (Some(_), Some(_)) => Err(EntityLookupError::Ambiguous(self.list_qualified_names(wanted))),
            (None, _) => {
                let in_other_case = |e: &&ExposedEntity| e.entity.eq_ignore_ascii_case(wanted);
                only_item(self.entities.iter().filter(in_catalog).filter(in_other_case)).ok_or_else(|| {
                    match self.find_untaught_entities(name) {
                        none if none.is_empty() => EntityLookupError::Unknown(self.list_similar_entities(wanted)),
                        matches => EntityLookupError::UntaughtEntity(matches),
                    }
                })
            }
        }
    }

    /// Finds entities of that name in the catalogs that the session pinned or could pin.
    fn find_untaught_entities(&self, name: &EntityName) -> Vec<UntaughtEntity> {
        let mut catalogs: BTreeMap<&base::CatalogId, &Catalog> = BTreeMap::new();
        for catalog in self.registry.iter().flat_map(|r| r.iter()).chain(self.entities.iter().map(|e| &e.catalog)) {
            // The pinned version replaces the offered version, because a seed is resolved in the pinned version.
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

    /// Lists the entities of a name, with their catalogs and symbols.
    fn list_qualified_names(&self, name: &str) -> Vec<String> {
        let entities = self.entities.iter().filter(|e| e.entity == name);
        entities.map(|e| format!("{}:{} ({})", e.catalog.id, e.entity, e.symbol)).collect()
    }

    /// Lists the entities with a similar name or symbol.
    fn list_similar_entities(&self, wanted: &str) -> Vec<String> {
        let symbolic = looks_like_symbol(wanted);
        let names: Vec<&str> =
            self.entities.iter().map(|e| if symbolic { e.symbol.as_str() } else { e.entity.as_str() }).collect();
        similar_names(wanted, names)
    }

    /// Finds an exposed entity by its catalog and name.
    pub fn find_exposed(&self, catalog: &Catalog, entity: &str) -> Option<&ExposedEntity> {
        self.entities.iter().find(|e| e.entity == entity && e.catalog.id == catalog.id)
    }

    /// Returns the API's name of a slot in a catalog. A symbol such as `p7` is resolved; another text is returned
    /// unchanged.
    pub fn wire_name<'a>(&'a self, catalog: &Catalog, text: &'a str) -> &'a str {
        // Most slots are written by name. Looking up every name took a twentieth of the time of checking.
        if !looks_like_symbol(text) {
            return text;
        }
        match self.slots.get(text) {
            Some(meaning) if meaning.catalog == catalog.id => &meaning.name,
            _ => text,
        }
    }

    /// Finds a field of an entity. The case of the name is ignored if only one field matches.
    pub fn field<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Field> {
        let fields = &exposed.definition()?.fields;
        let name = self.wire_name(&exposed.catalog, text);
        fields.get(name).or_else(|| only_item(fields.values().filter(|f| f.name.eq_ignore_ascii_case(name))))
    }

    /// Finds a relation that the session was taught, by symbol or name.
    pub fn relation<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Relation> {
        let written_name = exposed.relations.get(text).map_or(text, String::as_str);
        let in_other_case = || only_item(exposed.relations.values().filter(|r| r.eq_ignore_ascii_case(written_name)));
        let taught = exposed.relations.values().find(|r| *r == written_name).or_else(in_other_case)?;
        exposed.definition()?.relations.get(taught)
    }

    /// Finds a method that the session was taught, by its symbol, its capability name, or the capability name without
    /// the entity name. `-` and `_` are equal.
    pub fn method<'a>(&self, exposed: &'a ExposedEntity, text: &str) -> Option<&'a Capability> {
        let capability = |name: &String| exposed.catalog.capability(name);
        if let Some(name) = exposed.methods.get(text) {
            return capability(name);
        }
        let taught = || exposed.methods.values().filter_map(capability);
        only_item(taught().filter(|c| method_names_equal(&c.name, text)))
            .or_else(|| only_item(taught().filter(|c| method_names_equal(c.method_name(), text))))
    }

    /// Returns the name of a method in the author's style, such as `m3` or `close`.
    pub fn styled_method(&self, exposed: &ExposedEntity, capability: &Capability, style: NameStyle) -> String {
        let symbol = exposed.methods.iter().find(|(_, name)| **name == capability.name).map(|(symbol, _)| symbol);
        match (style, symbol) {
            (NameStyle::Symbols, Some(symbol)) => symbol.clone(),
            _ => capability.method_name().to_owned(),
        }
    }

    /// Finds the parameter of a slot name or symbol. The case of a name is ignored if only one parameter matches.
    pub fn param<'a>(
        &self,
        catalog: &Catalog,
        params: impl IntoIterator<Item = &'a Param, IntoIter: Clone>,
        text: &str,
    ) -> Option<&'a Param> {
        let name = self.wire_name(catalog, text);
        let mut params = params.into_iter();
        let in_other_case = only_item(params.clone().filter(|p| p.name.eq_ignore_ascii_case(name)));
        // If several names differ only in case, the exact name decides.
        in_other_case.or_else(|| params.find(|p| p.name == name))
    }

    /// Returns the name of a slot in the author's style, such as `p3` or `state`. A slot without a symbol is named in
    /// both styles.
    pub fn styled_slot(&self, catalog: &Catalog, name: &str, style: NameStyle) -> String {
        let symbol = match style {
            NameStyle::Symbols => self.slots.symbol(catalog, name),
            NameStyle::Names => None,
        };
        symbol.unwrap_or_else(|| name.to_owned())
    }
}

/// Returns the only item, or `None` if there are several. It keeps a name in another case from resolving ambiguously.
fn only_item<T>(mut matches: impl Iterator<Item = T>) -> Option<T> {
    let first = matches.next()?;
    matches.next().is_none().then_some(first)
}

/// Returns whether two method names are equal, ignoring case and the difference between `-` and `_`.
fn method_names_equal(one: &str, other: &str) -> bool {
    let normalize = |b: u8| if b == b'-' { b'_' } else { b.to_ascii_lowercase() };
    one.len() == other.len() && one.bytes().map(normalize).eq(other.bytes().map(normalize))
}

/// Returns whether a text looks like a symbol, such as `e1`, `m12`, `p3` or `r4`. Labels must not look like symbols.
pub fn looks_like_symbol(text: &str) -> bool {
    let mut chars = text.chars();
    matches!(chars.next(), Some('e' | 'm' | 'p' | 'r' | 's'))
        && !chars.as_str().is_empty()
        && chars.all(|c| c.is_ascii_digit())
}
