//! The rows of one wave: for each new entity its list, fields, get, query, search, method and relation lines, then what is new
//! of old ones.
//! Invariant: a slot is named with its type in the row that first needs it, and nowhere else.

use std::collections::{BTreeMap, HashSet};

use catalog::{Capability, Catalog, Entity, Param, Type};

use super::kinds::{For, is_long, shown};
use super::style::SlotStyle;
use crate::exposure::is_read;
use crate::fields::shown_fields;
use crate::ledger::{Ledger, Names, TaughtMethod, TaughtRelation, Wave};
use crate::seed::Catalogs;

pub struct Row {
    pub expr: String,
    pub meaning: String,
}

/// The wave that led from `before` to `ledger`.
pub struct Slice<'a> {
    pub before: &'a Ledger,
    pub ledger: &'a Ledger,
    pub catalogs: &'a Catalogs,
    pub wave: &'a Wave,
    pub style: SlotStyle,
}

/// What is new of one entity.
#[derive(Default)]
struct News<'a> {
    is_new: bool,
    methods: Vec<&'a TaughtMethod>,
    relations: Vec<&'a TaughtRelation>,
}

pub fn rows(slice: &Slice<'_>) -> Vec<Row> {
    let wave = slice.wave;
    let mut news: BTreeMap<usize, (&base::CatalogId, &str, News<'_>)> = BTreeMap::new();
    for new in &wave.entities {
        news.entry(number(&new.symbol)).or_insert((&new.catalog, &new.entity, News::default())).2.is_new = true;
    }
    for new in &wave.methods {
        news.entry(number(&new.of)).or_insert((&new.catalog, &new.entity, News::default())).2.methods.push(new);
    }
    for new in &wave.relations {
        news.entry(number(&new.from)).or_insert((&new.catalog, &new.entity, News::default())).2.relations.push(new);
    }
    let names = Names::of(slice.ledger);
    let mut named = HashSet::new();
    slice.before.each_slot(slice.catalogs, |catalog, name, kind, is_named| {
        named.extend(is_named.then(|| names.slot(catalog, name, kind)).flatten());
    });
    let mut sheet = Sheet {
        names,
        style: slice.style,
        qualified: slice.ledger.catalogs().len() > 1,
        named,
        parts: parts(slice),
        rows: Vec::new(),
    };
    // New entities first, then what is new of old ones.
    let (new, old): (Vec<_>, Vec<_>) = news.into_iter().partition(|(_, (_, _, news))| news.is_new);
    for (at, (id, name, news)) in new.into_iter().chain(old) {
        let Some(catalog) = slice.catalogs.get(id) else { continue };
        let Some(entity) = catalog.entity(name) else { continue };
        let symbol = format!("e{at}");
        let due = news.is_new || !slice.before.described(catalog, name);
        Writer { sheet: &mut sheet, catalog, entity, symbol: &symbol, due, anchored: false }.write(&news);
    }
    left_over(slice, &mut sheet);
    sheet.rows
}

/// A new entity that only calls which were taught before answer with is described on the first of them.
fn left_over<'a>(slice: &Slice<'a>, sheet: &mut Sheet<'a>) {
    if sheet.parts.is_empty() {
        return;
    }
    for method in slice.ledger.as_wave(slice.catalogs).methods {
        let Some(catalog) = slice.catalogs.get(&method.catalog) else { continue };
        let Some(capability) = catalog.capability(&method.capability).filter(|c| c.gives_rows()) else { continue };
        let gives = slice.ledger.symbol_of(&catalog.id, &capability.returns);
        let (Some(gives), Some(entity)) = (gives, catalog.entity(&method.entity)) else { continue };
        if sheet.parts.contains(&gives) {
            Writer { sheet, catalog, entity, symbol: &method.of, due: false, anchored: false }.method(&method);
        }
    }
}

/// Entities that only relations and calls of others in this wave lead to: no line of their own names their fields, and no
/// earlier one did.
fn parts(slice: &Slice<'_>) -> HashSet<String> {
    let own = |catalog: &Catalog, entity: &str| {
        let taught =
            slice.ledger.taught_methods(slice.catalogs).filter(|(c, m)| c.id == catalog.id && m.entity == entity);
        is_read(catalog, entity) || taught.into_iter().any(|(_, m)| m.gives_rows() && m.returns == entity)
    };
    let mut parts = HashSet::new();
    let mut add = |id: &base::CatalogId, name: &str| {
        let Some(catalog) = slice.catalogs.get(id) else { return };
        let known = slice.before.symbol_of(id, name).is_some() && slice.before.described(catalog, name);
        if !known && !own(catalog, name) {
            parts.extend(slice.ledger.symbol_of(id, name));
        }
    };
    for new in &slice.wave.entities {
        add(&new.catalog, &new.entity);
    }
    for method in &slice.wave.methods {
        let found = slice.catalogs.get(&method.catalog).and_then(|c| c.capability(&method.capability));
        found.into_iter().for_each(|c| add(&method.catalog, &c.returns));
    }
    for relation in &slice.wave.relations {
        let entity = slice.catalogs.get(&relation.catalog).and_then(|c| c.entity(&relation.entity));
        let found = entity.and_then(|e| e.relations.get(&relation.name));
        found.into_iter().for_each(|r| add(&relation.catalog, &r.target));
    }
    parts
}

fn number(symbol: &str) -> usize {
    symbol.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

/// What the rows so far have said.
struct Sheet<'a> {
    names: Names<'a>,
    style: SlotStyle,
    /// Entities are shown with their catalogs.
    qualified: bool,
    /// Numbers of slots that a row has named.
    named: HashSet<usize>,
    /// Symbols of entities whose fields a relation's line has yet to name.
    parts: HashSet<String>,
    rows: Vec<Row>,
}

#[derive(Default)]
struct Intro {
    lead: String,
    about: String,
    list: String,
    fields: String,
}

struct Writer<'s, 'a> {
    sheet: &'s mut Sheet<'a>,
    catalog: &'a Catalog,
    entity: &'a Entity,
    symbol: &'s str,
    /// No row has said yet what the entity is and which fields it has.
    due: bool,
    /// A row has spelled out the key.
    anchored: bool,
}

impl<'a> Writer<'_, 'a> {
    fn write(&mut self, news: &News<'a>) {
        if news.is_new {
            self.reads();
        }
        for method in &news.methods {
            self.method(method);
        }
        for relation in &news.relations {
            self.relation(relation);
        }
    }

    fn push(&mut self, expr: String, fragments: impl IntoIterator<Item = String>) {
        let fragments: Vec<String> = fragments.into_iter().filter(|f| !f.is_empty()).collect();
        let anchor = self.anchor();
        let starts = expr.starts_with(&anchor) && self.entity.key.len() > 1;
        // A key of several parts is spelled out once.
        let short = starts && self.anchored;
        let expr = if short { expr.replacen(&anchor, &format!("{}(..)", self.symbol), 1) } else { expr };
        self.anchored |= starts;
        self.sheet.rows.push(Row { expr, meaning: fragments.join(" · ") });
    }

    /// What the first row that gives rows of this entity says beside its own: what it is, and its fields by name. Asked for
    /// before the row names any other slot.
    fn intro(&mut self) -> Intro {
        if !std::mem::take(&mut self.due) {
            return Intro::default();
        }
        let (list, fields) = self.fields(self.entity);
        Intro { lead: self.lead(self.entity), about: one_line(&self.entity.about), list, fields }
    }

    /// A row that gives rows of this entity.
    fn read(&mut self, intro: Intro, expr: &str, returns: String, rest: Vec<String>) {
        let Intro { lead, about, list, fields } = intro;
        self.push(format!("{expr}{list}"), [lead, about, returns, fields].into_iter().chain(rest));
    }

    fn reads(&mut self) {
        let (symbol, name) = (self.symbol, &self.entity.name);
        let listable = self.catalog.queries(name).any(|c| c.required().next().is_none());
        if listable {
            self.listed();
        }
        if self.catalog.get_of(name).is_some() {
            let intro = self.intro();
            let key = self.key();
            self.read(intro, &self.anchor(), format!("→ {symbol}"), vec![key]);
        }
        let (catalog, entity) = (self.catalog, self.entity);
        for capability in catalog.queries(&entity.name).filter(|c| !c.params.is_empty()) {
            self.query(capability);
        }
        for capability in catalog.searches(&entity.name) {
            self.search(capability);
        }
    }

    /// The line of all, and that of the fields.
    fn listed(&mut self) {
        let symbol = self.symbol;
        if self.sheet.style == SlotStyle::Names {
            let intro = self.intro();
            return self.read(intro, symbol, format!("→ [{symbol}]"), Vec::new());
        }
        let Intro { lead, about, list, fields } = self.intro();
        self.push(symbol.to_owned(), [lead, about, format!("→ [{symbol}]")]);
        self.push(format!("{symbol}{list}"), [fields]);
    }

    fn query(&mut self, capability: &Capability) {
        let symbol = self.symbol;
        let required: Vec<&Param> = capability.required().collect();
        let mut optional: Vec<&Param> = capability.params.values().filter(|p| !p.required).collect();
        // A query with nothing required shows its first filter: the entity's own line already lists all.
        let shown = if required.is_empty() { optional.drain(..1).collect() } else { required };
        let expr = format!("{symbol}{{{}}}", self.filled(&shown));
        let intro = self.intro();
        let rest = self.named_then_optional(&shown, &optional);
        self.read(intro, &expr, format!("→ [{symbol}]"), [vec![one_line(&capability.about)], rest].concat());
    }

    fn search(&mut self, capability: &Capability) {
        let symbol = self.symbol;
        let others = capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name));
        let (required, optional): (Vec<&Param>, Vec<&Param>) = others.partition(|p| p.required);
        let braces = if required.is_empty() { String::new() } else { format!("{{{}}}", self.filled(&required)) };
        let intro = self.intro();
        let rest = self.named_then_optional(&required, &optional);
        let about = vec![one_line(&capability.about)];
        let expr = format!("{symbol}~\"text\"{braces}");
        self.read(intro, &expr, format!("→ [{symbol}]"), [about, rest].concat());
    }

    /// `e1(p1=$,p2=$).m1(p5=<<T)` on an instance, `e1.m2(p1=$)` on the type.
    fn method(&mut self, method: &TaughtMethod) {
        let Some(capability) = self.catalog.capability(&method.capability) else { return };
        let gives_itself = capability.gives_rows() && capability.returns == self.entity.name;
        let mut intro = match (gives_itself, self.due) {
            (true, _) => self.intro(),
            // Nothing gives rows of it yet, so its fields are not named; what it is, is said once.
            (false, true) => {
                let (lead, about) = (self.lead(self.entity), one_line(&self.entity.about));
                Intro { lead, about, ..Intro::default() }
            }
            (false, false) => Intro::default(),
        };
        self.due = false;
        let (receiver, key) = match capability.teaches_anchor() {
            true => (self.anchor(), self.key()),
            false => (self.symbol.to_owned(), String::new()),
        };
        let (required, optional): (Vec<&Param>, Vec<&Param>) = capability.params.values().partition(|p| p.required);
        let returns = match (capability.gives_rows(), self.sheet.names.entity(&self.catalog.id, &capability.returns)) {
            (false, _) => "→ ()".to_owned(),
            (true, Some(symbol)) => format!("→ {symbol}"),
            (true, None) => format!("→ {}", capability.returns),
        };
        let about = match one_line(&capability.about) {
            none if none.is_empty() => capability.method_name().to_owned(),
            about => about,
        };
        let answer = self.answer_of(capability).map(|(lead, list, fields)| {
            intro.list = list;
            format!("{lead}: {fields}")
        });
        let expr = format!("{receiver}.{}({})", method.symbol, self.filled(&required));
        let rest = self.named_then_optional(&required, &optional);
        self.read(intro, &expr, returns, [vec![about, key, answer.unwrap_or_default()], rest].concat());
    }

    /// What a call answers with, where no line before it has named the fields of that.
    fn answer_of(&mut self, capability: &Capability) -> Option<(String, String, String)> {
        let symbol = self.sheet.names.entity(&self.catalog.id, &capability.returns)?;
        if !capability.gives_rows() || !self.sheet.parts.remove(&symbol) {
            return None;
        }
        let target = self.catalog.entity(&capability.returns)?;
        let (list, fields) = self.fields(target);
        Some((self.lead(target), list, fields))
    }

    fn relation(&mut self, relation: &TaughtRelation) {
        let Some(found) = self.entity.relations.get(&relation.name) else { return };
        let returns = if found.many { format!("→ [{}]", relation.to) } else { format!("→ {}", relation.to) };
        let from = self.relation_source();
        let expr = format!("{from}.{}", relation.symbol);
        let described = !self.sheet.parts.remove(&relation.to);
        let Some(target) = self.catalog.entity(&found.target).filter(|_| !described) else {
            return self.push(expr, [returns, relation.name.clone()]);
        };
        let lead = self.lead(target);
        let (list, fields) = self.fields(target);
        self.push(format!("{expr}{list}"), [lead, one_line(&target.about), returns, relation.name.clone(), fields]);
    }

    /// What a relation line starts from: one row where one can be read, else the rows of a list or a scoped query.
    fn relation_source(&mut self) -> String {
        let name = &self.entity.name;
        if self.catalog.get_of(name).is_some() {
            return self.anchor();
        }
        let query = self.catalog.queries(name).next().map(|c| c.required().collect::<Vec<_>>());
        let braces = query.filter(|required| !required.is_empty()).map(|r| format!("{{{}}}", self.filled(&r)));
        format!("{}{}", self.symbol, braces.unwrap_or_default())
    }

    /// `e1(p1=$,p2=$)`, or `e1($)` when the key has one part.
    fn anchor(&self) -> String {
        let key: Vec<&catalog::Field> = self.entity.key_fields().collect();
        if let [_] = key.as_slice() {
            return format!("{}($)", self.symbol);
        }
        let slots: Vec<String> = key.iter().map(|f| format!("{}=$", self.slot(&f.name, &f.kind))).collect();
        format!("{}({})", self.symbol, slots.join(","))
    }

    /// The slots of `anchor` that had no name yet.
    fn key(&mut self) -> String {
        let key: Vec<&catalog::Field> = self.entity.key_fields().collect();
        if key.len() == 1 {
            return String::new();
        }
        let named: Vec<String> = key.iter().filter_map(|f| self.name_slot(&f.name, &f.kind)).collect();
        named.join(", ")
    }

    /// `p1=$,p5=<<T`
    fn filled(&self, params: &[&Param]) -> String {
        let fill =
            |p: &&Param| format!("{}={}", self.slot(&p.name, &p.kind), if is_long(&p.kind) { "<<T" } else { "$" });
        params.iter().map(fill).collect::<Vec<_>>().join(",")
    }

    /// `p6 note markdown` and `opt p3, p11 since date`
    fn named_then_optional(&mut self, required: &[&Param], optional: &[&Param]) -> Vec<String> {
        let first: Vec<String> = required.iter().filter_map(|p| self.name_slot(&p.name, &p.kind)).collect();
        let rest: Vec<String> = optional
            .iter()
            .map(|p| self.name_slot(&p.name, &p.kind).unwrap_or_else(|| self.slot(&p.name, &p.kind)))
            .collect();
        let rest = if rest.is_empty() { String::new() } else { format!("opt {}", rest.join(", ")) };
        vec![first.join(", "), rest]
    }

    /// With its catalog once a session has two.
    fn lead(&self, entity: &Entity) -> String {
        if self.sheet.qualified { format!("{}:{}", self.catalog.id, entity.name) } else { entity.name.clone() }
    }

    /// The projection that shows the fields, and their names and types in its order, so that no symbol need be repeated.
    fn fields(&mut self, entity: &Entity) -> (String, String) {
        let catalog = self.catalog;
        let mut list = Vec::new();
        let mut said = Vec::new();
        for field in shown_fields(entity) {
            if let Some(n) = self.sheet.names.slot(catalog, &field.name, &field.kind) {
                self.sheet.named.insert(n);
            }
            list.push(self.slot(&field.name, &field.kind));
            said.push(format!("{}{}", field.name, shown(&self.sheet.names, catalog, &field.kind, For::Field)));
        }
        let more = entity.fields.len() - said.len();
        if more > 0 {
            said.push(format!("… {more} more"));
        }
        let list = match self.sheet.style {
            SlotStyle::Symbols => format!("[{}]", list.join(",")),
            SlotStyle::Names => String::new(),
        };
        (list, said.join(", "))
    }

    fn slot(&self, name: &str, kind: &Type) -> String {
        let number = || self.sheet.names.slot(self.catalog, name, kind);
        match self.sheet.style {
            SlotStyle::Symbols => number().map_or_else(|| name.to_owned(), |n| format!("p{n}")),
            SlotStyle::Names => name.to_owned(),
        }
    }

    /// `p11 since date` the first time a row needs the slot, `None` afterwards. By name, only a type needs saying.
    fn name_slot(&mut self, name: &str, kind: &Type) -> Option<String> {
        let number = self.sheet.names.slot(self.catalog, name, kind)?;
        if !self.sheet.named.insert(number) {
            return None;
        }
        let typed = shown(&self.sheet.names, self.catalog, kind, For::Param);
        match self.sheet.style {
            SlotStyle::Symbols => Some(format!("p{number} {name}{typed}")),
            SlotStyle::Names if typed.is_empty() => None,
            SlotStyle::Names => Some(format!("{name}{typed}")),
        }
    }
}

/// A description stays in its cell.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
