//! The rows of one entity, written where they stand.
//! Invariant: a slot is named with its type in the row that first needs it, and nowhere else; `..` stands only for slots that an
//! earlier row of the same entity in the same wave spells out.
//!
//! The design's rows spell out every slot. Of imported APIs, whose keys have three and four parts, a third of a table was the
//! same two or three slots: so `e1(..)` has the key of an earlier row, `e1{..}` and `e1.m1(..,x=$)` that without its last slot,
//! calls that take nothing share a row like relations do, and the arrow alone sets off what a row gives.

use std::collections::{HashMap, HashSet};

use catalog::{Capability, Catalog, Entity, FieldSource, Param, Type};

use super::kinds::{self, SlotUse, is_long, write_symbol};
use super::phrases::{
    add_item, add_phrase, add_result, count_omitted, one_line, restates, result_type, without_object,
};
use super::rows::{EntityChanges, Row, WaveInput, number};
use crate::ledger::{SymbolIndex, TaughtMethod, TaughtRelation};
use crate::settings::SlotStyle;
use crate::shown_slots::{RowSlots, leading_key_slots, shown_fields};

/// So many fields are repeated sooner than another entity that has the same is named.
const REPEATED: usize = 3;

/// What the rows so far have said.
pub struct TableState<'a> {
    pub names: SymbolIndex<'a>,
    style: SlotStyle,
    /// Entities are shown with their catalogs.
    qualified: bool,
    /// `..` stands for the leading slots of a key.
    leads: bool,
    /// Whether a row has named a slot, by its number.
    named: Vec<bool>,
    /// Numbers of entities whose fields a relation's or a call's line has yet to name.
    pub undescribed: HashSet<usize>,
    /// Fields as a row named them, and whose they are.
    lists: HashMap<String, usize>,
    pub rows: Vec<Row>,
}

impl<'a> TableState<'a> {
    pub fn new(wave_input: &WaveInput<'_>, undescribed: HashSet<usize>, names: SymbolIndex<'a>) -> Self {
        let named = vec![false; names.slot_count() + 1];
        let (style, leads, qualified) = (wave_input.style, wave_input.leads, wave_input.ledger.catalogs().len() > 1);
        Self { names, style, qualified, leads, named, undescribed, lists: HashMap::new(), rows: Vec::new() }
    }

    /// The slot's number, and whether it was named before; it is from here on.
    pub fn is_named(&mut self, catalog: &Catalog, name: &str, kind: &Type) -> Option<(usize, bool)> {
        let number = self.names.slot(catalog, name, kind)?;
        let named = self.named.get_mut(number).is_some_and(|named| std::mem::replace(named, true));
        Some((number, named))
    }
}

pub struct Writer<'s, 'a> {
    state: &'s mut TableState<'a>,
    catalog: &'a Catalog,
    entity: &'a Entity,
    at: usize,
    /// `e4`
    symbol: String,
    /// `e4(p1=$,p2=$)`, or `e4($)` when the key has one part.
    anchor: String,
    /// No row has said yet what the entity is and which fields it has.
    due: bool,
    /// A row has spelled out the key.
    anchored: bool,
    /// The row of its first relation that says nothing else.
    related: Option<usize>,
    /// The rows of calls that take nothing, and what they give.
    plain: Vec<(String, usize)>,
}

impl<'s, 'a> Writer<'s, 'a> {
    /// Of the entity with this number; whether it is still to be described.
    pub fn new(
        state: &'s mut TableState<'a>,
        catalog: &'a Catalog,
        entity: &'a Entity,
        (at, due): (usize, bool),
    ) -> Self {
        let mut name = String::new();
        write_symbol(&mut name, 'e', at);
        let anchor = String::new();
        let (anchored, related, plain) = (false, None, Vec::new());
        let mut writer = Self { state, catalog, entity, at, symbol: name, anchor, due, anchored, related, plain };
        writer.anchor = writer.spelled();
        writer
    }

    pub fn write(&mut self, changes: &EntityChanges<'a>) {
        if changes.is_new {
            self.reads();
        }
        for method in &changes.methods {
            self.method(method);
        }
        for relation in &changes.relations {
            self.relation(relation);
        }
    }

    fn push(&mut self, mut expr: String, meaning: String) {
        let starts = self.entity.key.len() > 1 && expr.starts_with(&self.anchor);
        // A key of several parts is spelled out once.
        if starts && self.anchored {
            expr.replace_range(self.symbol.len()..self.anchor.len(), "(..)");
        }
        self.anchored |= starts;
        self.state.rows.push(Row { expr, meaning, also: Vec::new() });
    }

    /// A row that gives rows of this entity: the first of them says beside its own what it is, and its fields.
    fn read(&mut self, mut expr: String, filled: &[&Param], many: bool, rest: impl FnOnce(&mut Self, &mut String)) {
        let mut meaning = String::new();
        let introduces = std::mem::take(&mut self.due);
        if introduces {
            self.lead(&mut meaning, self.entity);
        }
        add_result(&mut meaning, |out| result_type(out, self.at, many));
        if introduces {
            let spelled = (filled, expr.starts_with(&self.anchor));
            self.fields(self.entity, spelled, (&mut expr, &mut meaning));
        }
        rest(self, &mut meaning);
        self.push(expr, meaning);
    }

    fn reads(&mut self) {
        let (catalog, entity) = (self.catalog, self.entity);
        let listable = catalog.queries(&entity.name).any(|c| c.required().next().is_none());
        if listable {
            self.listed();
        }
        if catalog.get_of(&entity.name).is_some() {
            self.read(self.anchor.clone(), &[], false, |this, out| this.key(out));
        }
        for capability in catalog.queries(&entity.name).filter(|c| !c.params.is_empty()) {
            self.query(capability);
        }
        for capability in catalog.searches(&entity.name) {
            self.search(capability);
        }
    }

    /// The line of all, and that of the fields.
    fn listed(&mut self) {
        if self.state.style == SlotStyle::Names || !self.due {
            return self.read(self.symbol.clone(), &[], true, |_, _| {});
        }
        self.due = false;
        let (mut meaning, mut fields, mut list) = (String::new(), String::new(), self.symbol.clone());
        self.lead(&mut meaning, self.entity);
        add_result(&mut meaning, |out| result_type(out, self.at, true));
        self.push(self.symbol.clone(), meaning);
        self.fields(self.entity, (&[], false), (&mut list, &mut fields));
        self.push(list, fields);
    }

    fn query(&mut self, capability: &'a Capability) {
        let slots = RowSlots::of(capability);
        let mut expr = self.symbol.clone();
        self.braced(&mut expr, &slots.filled);
        let mut said: Vec<&str> = slots.filled.iter().map(|p| p.name.as_str()).collect();
        said.push(&self.entity.name);
        let says_more = !restates(&capability.about, &said);
        self.read(expr, &slots.filled, true, |this, out| {
            if says_more {
                add_phrase(out, |out| one_line(out, &capability.about));
            }
            this.name_slots(out, &slots);
        });
    }

    fn search(&mut self, capability: &'a Capability) {
        let slots = RowSlots::of(capability);
        let mut expr = format!("{}~\"text\"", self.symbol);
        if !slots.filled.is_empty() {
            self.braced(&mut expr, &slots.filled);
        }
        self.read(expr, &slots.filled, true, |this, out| {
            add_phrase(out, |out| one_line(out, &capability.about));
            this.name_slots(out, &slots);
        });
    }

    fn braced(&self, expr: &mut String, filled: &[&Param]) {
        expr.push('{');
        self.led_calls(expr, filled);
        expr.push('}');
    }

    /// Of a list or of a call on the type: once a row has spelled out the key, `..` stands for all of its slots but the last.
    fn led_calls(&self, expr: &mut String, filled: &[&Param]) {
        let leading_key_slots =
            if self.anchored && self.state.leads { leading_key_slots(self.entity, filled) } else { 0 };
        expr.push_str(if leading_key_slots > 0 { ".." } else { "" });
        let rest = filled.get(leading_key_slots..).unwrap_or_default();
        expr.push_str(if leading_key_slots > 0 && !rest.is_empty() { "," } else { "" });
        self.filled(expr, rest);
    }

    /// `e1(p1=$,p2=$).m1(p5=<<T)` on an instance, `e1.m2(p1=$)` on the type.
    pub fn method(&mut self, method: &TaughtMethod) {
        let Some(capability) = self.catalog.capability(&method.capability) else { return };
        let slots = RowSlots::of(capability);
        let on_instance = capability.needs_anchor();
        let mut expr = if on_instance { self.anchor.clone() } else { self.symbol.clone() };
        expr.push('.');
        expr.push_str(&method.symbol);
        expr.push('(');
        if on_instance {
            self.filled(&mut expr, &slots.filled);
        } else {
            self.led_calls(&mut expr, &slots.filled);
        }
        expr.push(')');
        let mut meaning = String::new();
        let introduces = std::mem::take(&mut self.due);
        if introduces {
            self.lead(&mut meaning, self.entity);
        }
        add_result(&mut meaning, |out| self.gives(out, capability));
        // Where nothing gives rows of it yet, its fields are not named; what it is, is said once.
        if introduces && capability.gives_rows() && capability.returns == self.entity.name {
            self.fields(self.entity, (&slots.filled, on_instance), (&mut expr, &mut meaning));
        }
        add_phrase(&mut meaning, |out| match capability.about.trim() {
            "" => out.push_str(capability.method_name()),
            about if on_instance => one_line(out, without_object(about, &self.entity.name)),
            about => one_line(out, about),
        });
        if on_instance {
            self.key(&mut meaning);
        }
        self.answer_of(capability, (&mut expr, &mut meaning));
        self.name_slots(&mut meaning, &slots);
        self.push_call(expr, meaning);
    }

    /// Calls on one row that take nothing and give the same stand beside the first of them: `.m5() unlock`.
    fn push_call(&mut self, expr: String, meaning: String) {
        let call = expr.strip_prefix(&self.anchor).filter(|call| call.ends_with("()"));
        let phrases =
            meaning.split_once(" · ").filter(|(gives, about)| gives.starts_with('→') && !about.contains(" · "));
        let (Some(call), Some((gives, about))) = (call, phrases) else { return self.push(expr, meaning) };
        let Some((_, row)) = self.plain.iter().find(|(other, _)| other == gives) else {
            self.plain.push((gives.to_owned(), self.state.rows.len()));
            return self.push(expr, meaning);
        };
        if let Some(row) = self.state.rows.get_mut(*row) {
            add_phrase(&mut row.meaning, |out| {
                out.push_str(call);
                out.push(' ');
                out.push_str(about);
            });
            row.also.push(expr);
        }
    }

    fn gives(&self, out: &mut String, capability: &Capability) {
        match (capability.gives_rows(), self.state.names.entity(&self.catalog.id, &capability.returns)) {
            (false, _) => out.push_str("→ ()"),
            (true, Some(at)) => result_type(out, at, false),
            (true, None) => {
                out.push_str("→ ");
                out.push_str(&capability.returns);
            }
        }
    }

    /// What a call answers with, where no line before it has named the fields of that.
    fn answer_of(&mut self, capability: &Capability, (expr, meaning): (&mut String, &mut String)) {
        if self.state.undescribed.is_empty() || !capability.gives_rows() {
            return;
        }
        let answer = self.state.names.entity(&self.catalog.id, &capability.returns);
        let target =
            answer.filter(|at| self.state.undescribed.remove(at)).and(self.catalog.entity(&capability.returns));
        let Some(target) = target else { return };
        let mut fields = String::new();
        self.fields(target, (&[], false), (expr, &mut fields));
        add_phrase(meaning, |out| {
            self.name(out, target);
            out.push_str(": ");
            out.push_str(&fields);
        });
    }

    fn relation(&mut self, relation: &TaughtRelation) {
        let Some(found) = self.entity.relations.get(&relation.name) else { return };
        let mut expr = self.relation_source();
        expr.push('.');
        expr.push_str(&relation.symbol);
        let to = number(&relation.to);
        let described = !self.state.undescribed.remove(&to);
        if let Some(target) = self.catalog.entity(&found.target).filter(|_| !described) {
            let mut meaning = String::new();
            self.lead(&mut meaning, target);
            add_result(&mut meaning, |out| result_type(out, to, found.many));
            add_phrase(&mut meaning, |out| out.push_str(&relation.name));
            self.fields(target, (&[], false), (&mut expr, &mut meaning));
            return self.push(expr, meaning);
        }
        let mut meaning = String::new();
        if let Some(row) = self.related.and_then(|at| self.state.rows.get_mut(at)) {
            // The other relations of an entity stand beside its first: `.r2 → [e7] comments`.
            add_phrase(&mut row.meaning, |out| {
                out.push('.');
                out.push_str(&relation.symbol);
                out.push(' ');
                result_type(out, to, found.many);
                out.push(' ');
                out.push_str(&relation.name);
            });
            return row.also.push(expr);
        }
        add_result(&mut meaning, |out| result_type(out, to, found.many));
        add_phrase(&mut meaning, |out| out.push_str(&relation.name));
        self.related = Some(self.state.rows.len());
        self.push(expr, meaning);
    }

    /// What a relation line starts from: one row where one can be read, else the rows of a list or a scoped query.
    fn relation_source(&self) -> String {
        let name = &self.entity.name;
        if self.catalog.get_of(name).is_some() {
            return self.anchor.clone();
        }
        let mut source = self.symbol.clone();
        let required = |c: &'a Capability| c.required().collect::<Vec<&Param>>();
        let query = self.catalog.queries(name).next().map(required);
        if let Some(required) = query.filter(|required| !required.is_empty()) {
            self.braced(&mut source, &required);
        }
        source
    }

    fn spelled(&self) -> String {
        let mut out = self.symbol.clone();
        if self.entity.key.len() == 1 {
            out.push_str("($)");
            return out;
        }
        out.push('(');
        for (at, field) in self.entity.key_fields().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            self.slot(&mut out, &field.name, &field.kind);
            out.push_str("=$");
        }
        out.push(')');
        out
    }

    /// The slots of the key that had no name yet.
    fn key(&mut self, out: &mut String) {
        if self.entity.key.len() == 1 {
            return;
        }
        let entity = self.entity;
        add_phrase(out, |out| {
            let from = out.len();
            for field in entity.key_fields() {
                add_item(out, from, |out| self.name_slot(out, &field.name, &field.kind, SlotUse::Filled));
            }
        });
    }

    /// `p1=$,p5=<<T`
    fn filled(&self, out: &mut String, params: &[&Param]) {
        for (at, param) in params.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            self.slot(out, &param.name, &param.kind);
            out.push_str(if is_long(&param.kind) { "=<<T" } else { "=$" });
        }
    }

    /// `p6 note markdown` and `opt p3, p11 since date`
    fn name_slots(&mut self, out: &mut String, slots: &RowSlots<'_>) {
        add_phrase(out, |out| {
            let from = out.len();
            for param in &slots.filled {
                add_item(out, from, |out| self.name_slot(out, &param.name, &param.kind, SlotUse::Filled));
            }
        });
        if slots.optional.is_empty() {
            return;
        }
        add_phrase(out, |out| {
            out.push_str("opt ");
            let from = out.len();
            for param in &slots.optional {
                add_item(out, from, |out| {
                    let before = out.len();
                    self.name_slot(out, &param.name, &param.kind, SlotUse::Optional);
                    if out.len() == before {
                        self.slot(out, &param.name, &param.kind);
                    }
                });
            }
            count_omitted(out, slots.more);
        });
    }

    /// What an entity is: its name, and its description where that says more.
    fn lead(&self, out: &mut String, entity: &Entity) {
        add_phrase(out, |out| self.name(out, entity));
        if !restates(&entity.about, &[&entity.name, self.catalog.id.as_str()]) {
            add_phrase(out, |out| one_line(out, &entity.about));
        }
    }

    /// With its catalog once a session has two.
    fn name(&self, out: &mut String, entity: &Entity) {
        if self.state.qualified {
            out.push_str(self.catalog.id.as_str());
            out.push(':');
        }
        out.push_str(&entity.name);
    }

    /// The projection that shows the fields, and their names and types in its order, so that no symbol need be repeated. By
    /// name, those that the row's own expression spells out as parts of the key are not said again, and fields that another
    /// entity has too are said to be the same.
    fn fields(
        &mut self,
        entity: &'a Entity,
        (filled, key_spelled): (&[&Param], bool),
        (expr, meaning): (&mut String, &mut String),
    ) {
        let catalog = self.catalog;
        let by_name = self.state.style == SlotStyle::Names;
        let in_key = |name: &String| by_name && entity.key.len() > 1 && entity.key.contains(name);
        let in_expr = |name: &String| key_spelled || filled.iter().any(|p| p.name == *name);
        let (mut said, mut list) = (String::new(), String::new());
        let (mut count, mut shown) = (0, 0);
        for field in shown_fields(entity) {
            self.state.is_named(catalog, &field.name, &field.kind);
            shown += 1;
            // A moment that stands in for a key tells nothing of what was read.
            let stands_in = entity.key.len() == 1 && matches!(field.source, FieldSource::Header(_));
            if stands_in || (in_key(&field.name) && in_expr(&field.name)) {
                continue;
            }
            count += 1;
            if !by_name {
                add_item(&mut list, 0, |out| self.slot(out, &field.name, &field.kind));
            }
            add_item(&mut said, 0, |out| {
                out.push_str(&field.name);
                kinds::write(out, &self.state.names, catalog, &field.kind, SlotUse::Field);
            });
        }
        count_omitted(&mut said, entity.fields.len() - shown);
        if !by_name {
            expr.push('[');
            expr.push_str(&list.replace(", ", ","));
            expr.push(']');
        } else if count >= REPEATED {
            let Some(mine) = self.state.names.entity(&catalog.id, &entity.name) else { return };
            let first = *self.state.lists.entry(said.clone()).or_insert(mine);
            if first != mine {
                said.clear();
                said.push_str("fields as ");
                write_symbol(&mut said, 'e', first);
            }
        }
        add_phrase(meaning, |out| out.push_str(&said));
    }

    fn slot(&self, out: &mut String, name: &str, kind: &Type) {
        let number = match self.state.style {
            SlotStyle::Symbols => self.state.names.slot(self.catalog, name, kind),
            SlotStyle::Names => None,
        };
        match number {
            Some(n) => write_symbol(out, 'p', n),
            None => out.push_str(name),
        }
    }

    /// `p11 since date` the first time a row needs the slot, nothing afterwards. By name, only a type needs saying.
    fn name_slot(&mut self, out: &mut String, name: &str, kind: &Type, slot_use: SlotUse) {
        let Some((number, false)) = self.state.is_named(self.catalog, name, kind) else { return };
        let from = out.len();
        if self.state.style == SlotStyle::Symbols {
            write_symbol(out, 'p', number);
            out.push(' ');
        }
        out.push_str(name);
        let before = out.len();
        kinds::write(out, &self.state.names, self.catalog, kind, slot_use);
        if self.state.style == SlotStyle::Names && out.len() == before {
            out.truncate(from);
        }
    }
}
