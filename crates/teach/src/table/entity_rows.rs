//! The table rows of one entity: list, get, queries, searches, methods and relations.
//! Invariant: each slot is explained once with its type, in the first row that uses it. `..` only replaces slots that an
//! earlier row of the same entity in the same wave spells out.
//!
//! Keys of imported APIs have three or four parts, and without abbreviations a third of a table would repeat the same slots.
//! The abbreviations are: `e1(..)` is the key of an earlier row; `e1{..}` and `e1.m1(..,x=$)` contain that key without its last
//! slot; calls without arguments share one row, and relations share one row. Only an arrow separates the result of a row from
//! the text before it.

use catalog::{Capability, Catalog, Entity, FieldSource, Param, Type};

use super::phrases::{
    add_item, add_omitted_count, add_phrase, add_result, restates, without_object, write_one_line, write_result_type,
};
use super::slot_types::{SlotUse, is_long, write_symbol, write_type};
use super::state::{EntityChanges, TableRow, TableState, symbol_number};
use crate::ledger::{TaughtMethod, TaughtRelation};
use crate::settings::SlotStyle;
use crate::shown_slots::{RowSlots, leading_key_slots, shown_fields};

/// The minimum length at which an entity with the same list of fields as another entity refers to that entity instead of
/// repeating the list.
const MIN_SHARED_FIELDS: usize = 3;

/// Writes the rows of one entity to the table.
pub struct EntityWriter<'s, 'a> {
    state: &'s mut TableState<'a>,
    catalog: &'a Catalog,
    entity: &'a Entity,
    /// The number of the entity's symbol.
    number: usize,
    /// The entity's symbol, such as `e4`.
    symbol: String,
    /// The expression for one instance: `e4(p1=$,p2=$)`, or `e4($)` if the key has one part.
    anchor: String,
    /// Whether no row has described the entity and its fields so far.
    needs_description: bool,
    /// Whether a row has spelled out the key, so that `(..)` may replace it.
    has_spelled_key: bool,
    /// The index of the row to which further relations are added: the first relation row that does not describe its target
    /// entity.
    relations_row: Option<usize>,
    /// The result and the row index of each row of calls without arguments. Further calls with the same result are added to
    /// that row.
    simple_call_rows: Vec<(String, usize)>,
}

impl<'s, 'a> EntityWriter<'s, 'a> {
    pub fn new(
        state: &'s mut TableState<'a>,
        catalog: &'a Catalog,
        entity: &'a Entity,
        number: usize,
        needs_description: bool,
    ) -> Self {
        let mut symbol = String::new();
        write_symbol(&mut symbol, 'e', number);
        let mut writer = Self {
            state,
            catalog,
            entity,
            number,
            symbol,
            anchor: String::new(),
            needs_description,
            has_spelled_key: false,
            relations_row: None,
            simple_call_rows: Vec::new(),
        };
        writer.anchor = writer.spelled_anchor();
        writer
    }

    /// Writes all rows of the entity's part of the wave.
    pub fn write(&mut self, changes: &EntityChanges<'a>) {
        if changes.is_new {
            self.write_reads();
        }
        for method in &changes.methods {
            self.write_method(method);
        }
        for relation in &changes.relations {
            self.write_relation(relation);
        }
    }

    fn write_reads(&mut self) {
        let catalog = self.catalog;
        let name = &self.entity.name;
        if catalog.queries(name).any(|c| c.required().next().is_none()) {
            self.write_list();
        }
        if catalog.get_of(name).is_some() {
            self.write_read(self.anchor.clone(), &[], false, |writer, out| writer.name_key_slots(out));
        }
        for capability in catalog.queries(name).filter(|c| !c.params.is_empty()) {
            self.write_query(capability);
        }
        for capability in catalog.searches(name) {
            self.write_search(capability);
        }
    }

    /// Writes the row of the entity's list. In the symbol style, the fields have a separate row whose expression contains their
    /// symbols.
    fn write_list(&mut self) {
        if self.state.style == SlotStyle::Names || !self.needs_description {
            return self.write_read(self.symbol.clone(), &[], true, |_, _| {});
        }
        self.needs_description = false;
        let mut meaning = String::new();
        self.add_description(&mut meaning, self.entity);
        add_result(&mut meaning, |out| write_result_type(out, self.number, true));
        self.push_row(self.symbol.clone(), meaning);
        let mut fields_expr = self.symbol.clone();
        let mut fields_meaning = String::new();
        self.add_fields(self.entity, &[], false, &mut fields_expr, &mut fields_meaning);
        self.push_row(fields_expr, fields_meaning);
    }

    fn write_query(&mut self, capability: &'a Capability) {
        let slots = RowSlots::of(capability);
        let mut expr = self.symbol.clone();
        self.push_filters(&mut expr, &slots.filled);
        let mut known_names: Vec<&str> = slots.filled.iter().map(|p| p.name.as_str()).collect();
        known_names.push(&self.entity.name);
        let says_more = !restates(&capability.about, &known_names);
        self.write_read(expr, &slots.filled, true, |writer, out| {
            if says_more {
                add_phrase(out, |out| write_one_line(out, &capability.about));
            }
            writer.name_params(out, &slots);
        });
    }

    fn write_search(&mut self, capability: &'a Capability) {
        let slots = RowSlots::of(capability);
        let mut expr = format!("{}~\"text\"", self.symbol);
        if !slots.filled.is_empty() {
            self.push_filters(&mut expr, &slots.filled);
        }
        self.write_read(expr, &slots.filled, true, |writer, out| {
            add_phrase(out, |out| write_one_line(out, &capability.about));
            writer.name_params(out, &slots);
        });
    }

    /// Writes the row of a read that returns rows of this entity. The first such row also describes the entity and its fields.
    fn write_read(
        &mut self,
        mut expr: String,
        filled: &[&Param],
        many: bool,
        add_rest: impl FnOnce(&mut Self, &mut String),
    ) {
        let mut meaning = String::new();
        let describes = std::mem::take(&mut self.needs_description);
        if describes {
            self.add_description(&mut meaning, self.entity);
        }
        add_result(&mut meaning, |out| write_result_type(out, self.number, many));
        if describes {
            let spells_key = expr.starts_with(&self.anchor);
            self.add_fields(self.entity, filled, spells_key, &mut expr, &mut meaning);
        }
        add_rest(self, &mut meaning);
        self.push_row(expr, meaning);
    }

    /// Writes the row of a method: `e1(p1=$,p2=$).m1(p5=<<T)` on an instance, `e1.m2(p1=$)` on the entity.
    pub fn write_method(&mut self, method: &TaughtMethod) {
        let Some(capability) = self.catalog.capability(&method.capability) else { return };
        let slots = RowSlots::of(capability);
        let on_instance = capability.needs_anchor();
        let mut expr = if on_instance { self.anchor.clone() } else { self.symbol.clone() };
        expr.push('.');
        expr.push_str(&method.symbol);
        expr.push('(');
        if on_instance {
            self.push_places(&mut expr, &slots.filled);
        } else {
            self.push_abbreviated_places(&mut expr, &slots.filled);
        }
        expr.push(')');
        let mut meaning = String::new();
        let describes = std::mem::take(&mut self.needs_description);
        if describes {
            self.add_description(&mut meaning, self.entity);
        }
        add_result(&mut meaning, |out| self.write_method_result(out, capability));
        // The fields are described only if this method returns rows of the entity, because otherwise a program cannot read
        // them.
        if describes && capability.gives_rows() && capability.returns == self.entity.name {
            self.add_fields(self.entity, &slots.filled, on_instance, &mut expr, &mut meaning);
        }
        add_phrase(&mut meaning, |out| match capability.about.trim() {
            "" => out.push_str(capability.method_name()),
            about if on_instance => write_one_line(out, without_object(about, &self.entity.name)),
            about => write_one_line(out, about),
        });
        if on_instance {
            self.name_key_slots(&mut meaning);
        }
        self.describe_answer(capability, &mut expr, &mut meaning);
        self.name_params(&mut meaning, &slots);
        self.push_method_row(expr, meaning);
    }

    fn write_method_result(&self, out: &mut String, capability: &Capability) {
        if !capability.gives_rows() {
            return out.push_str("→ ()");
        }
        match self.state.symbols.entity(&self.catalog.id, &capability.returns) {
            Some(number) => write_result_type(out, number, false),
            None => {
                out.push_str("→ ");
                out.push_str(&capability.returns);
            }
        }
    }

    /// Adds the name and the fields of the entity that a method returns, unless a row has already described that entity.
    fn describe_answer(&mut self, capability: &Capability, expr: &mut String, meaning: &mut String) {
        if self.state.undescribed.is_empty() || !capability.gives_rows() {
            return;
        }
        let Some(number) = self.state.symbols.entity(&self.catalog.id, &capability.returns) else { return };
        if !self.state.undescribed.remove(&number) {
            return;
        }
        let Some(answer) = self.catalog.entity(&capability.returns) else { return };
        let mut fields = String::new();
        self.add_fields(answer, &[], false, expr, &mut fields);
        add_phrase(meaning, |out| {
            self.write_name(out, answer);
            out.push_str(": ");
            out.push_str(&fields);
        });
    }

    /// Adds the row of a method. A call on an instance without arguments is added to the first row with the same result: `… ·
    /// .m5() unlock`.
    fn push_method_row(&mut self, expr: String, meaning: String) {
        let call = expr.strip_prefix(&self.anchor).filter(|call| call.ends_with("()"));
        let result_and_about =
            meaning.split_once(" · ").filter(|(result, about)| result.starts_with('→') && !about.contains(" · "));
        let (Some(call), Some((result, about))) = (call, result_and_about) else {
            return self.push_row(expr, meaning);
        };
        let Some((_, row)) = self.simple_call_rows.iter().find(|(other, _)| other == result) else {
            self.simple_call_rows.push((result.to_owned(), self.state.rows.len()));
            return self.push_row(expr, meaning);
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

    fn write_relation(&mut self, taught: &TaughtRelation) {
        let Some(relation) = self.entity.relations.get(&taught.name) else { return };
        let mut expr = self.relation_source();
        expr.push('.');
        expr.push_str(&taught.symbol);
        let target_number = symbol_number(&taught.to);
        let target_needs_description = self.state.undescribed.remove(&target_number);
        if let Some(target) = self.catalog.entity(&relation.target).filter(|_| target_needs_description) {
            let mut meaning = String::new();
            self.add_description(&mut meaning, target);
            add_result(&mut meaning, |out| write_result_type(out, target_number, relation.many));
            add_phrase(&mut meaning, |out| out.push_str(&taught.name));
            self.add_fields(target, &[], false, &mut expr, &mut meaning);
            return self.push_row(expr, meaning);
        }
        if let Some(row) = self.relations_row.and_then(|row| self.state.rows.get_mut(row)) {
            // Further relations of the entity are added to the row of the first relation: `… · .r2 → [e7] comments`.
            add_phrase(&mut row.meaning, |out| {
                out.push('.');
                out.push_str(&taught.symbol);
                out.push(' ');
                write_result_type(out, target_number, relation.many);
                out.push(' ');
                out.push_str(&taught.name);
            });
            return row.also.push(expr);
        }
        let mut meaning = String::new();
        add_result(&mut meaning, |out| write_result_type(out, target_number, relation.many));
        add_phrase(&mut meaning, |out| out.push_str(&taught.name));
        self.relations_row = Some(self.state.rows.len());
        self.push_row(expr, meaning);
    }

    /// Returns the expression before a relation: one instance if the entity has a get, otherwise the list.
    fn relation_source(&self) -> String {
        let name = &self.entity.name;
        if self.catalog.get_of(name).is_some() {
            return self.anchor.clone();
        }
        let mut source = self.symbol.clone();
        if let Some(query) = self.catalog.queries(name).next() {
            let required: Vec<&Param> = query.required().collect();
            if !required.is_empty() {
                self.push_filters(&mut source, &required);
            }
        }
        source
    }

    /// Adds a row. `(..)` replaces a multi-part key that an earlier row spells out.
    fn push_row(&mut self, mut expr: String, meaning: String) {
        let spells_key = self.entity.key.len() > 1 && expr.starts_with(&self.anchor);
        if spells_key && self.has_spelled_key {
            expr.replace_range(self.symbol.len()..self.anchor.len(), "(..)");
        }
        self.has_spelled_key |= spells_key;
        self.state.rows.push(TableRow { expr, meaning, also: Vec::new() });
    }

    fn spelled_anchor(&self) -> String {
        let mut out = self.symbol.clone();
        if self.entity.key.len() == 1 {
            out.push_str("($)");
            return out;
        }
        out.push('(');
        for (position, field) in self.entity.key_fields().enumerate() {
            out.push_str(if position == 0 { "" } else { "," });
            self.push_slot(&mut out, &field.name, &field.kind);
            out.push_str("=$");
        }
        out.push(')');
        out
    }

    /// Appends the filters of a list: `{p1=$,p5=$}`.
    fn push_filters(&self, expr: &mut String, params: &[&Param]) {
        expr.push('{');
        self.push_abbreviated_places(expr, params);
        expr.push('}');
    }

    /// Appends the places to fill of a list, or of a call on the entity. If a row has spelled out the key, `..` replaces all
    /// key slots except the last.
    fn push_abbreviated_places(&self, expr: &mut String, params: &[&Param]) {
        let abbreviated = if self.has_spelled_key && self.state.abbreviates_keys {
            leading_key_slots(self.entity, params)
        } else {
            0
        };
        expr.push_str(if abbreviated > 0 { ".." } else { "" });
        let rest = params.get(abbreviated..).unwrap_or_default();
        expr.push_str(if abbreviated > 0 && !rest.is_empty() { "," } else { "" });
        self.push_places(expr, rest);
    }

    /// Appends the parameters with places to fill: `p1=$,p5=<<T`.
    fn push_places(&self, out: &mut String, params: &[&Param]) {
        for (position, param) in params.iter().enumerate() {
            out.push_str(if position == 0 { "" } else { "," });
            self.push_slot(out, &param.name, &param.kind);
            out.push_str(if is_long(&param.kind) { "=<<T" } else { "=$" });
        }
    }

    /// Appends a slot in the style of the table: its symbol (`p7`) or its name.
    fn push_slot(&self, out: &mut String, name: &str, kind: &Type) {
        let number = match self.state.style {
            SlotStyle::Symbols => self.state.symbols.slot(self.catalog, name, kind),
            SlotStyle::Names => None,
        };
        match number {
            Some(number) => write_symbol(out, 'p', number),
            None => out.push_str(name),
        }
    }

    /// Appends the name of an entity, and its description unless the description only repeats the name.
    fn add_description(&self, out: &mut String, entity: &Entity) {
        add_phrase(out, |out| self.write_name(out, entity));
        if !restates(&entity.about, &[&entity.name, self.catalog.id.as_str()]) {
            add_phrase(out, |out| write_one_line(out, &entity.about));
        }
    }

    /// Appends the name of an entity, with its catalog if the session has several catalogs.
    fn write_name(&self, out: &mut String, entity: &Entity) {
        if self.state.is_qualified {
            out.push_str(self.catalog.id.as_str());
            out.push(':');
        }
        out.push_str(&entity.name);
    }

    /// Appends the names and types of the entity's fields to `meaning`. In the symbol style, `expr` gets a projection with the
    /// symbols of the fields. The names are in the same order, so no symbol is written twice.
    ///
    /// In the name style, key parts that `expr` spells out are omitted: the parts in `filled`, or all parts if `spells_key` is
    /// true. A list that equals the list of another entity becomes a reference to that entity.
    fn add_fields(
        &mut self,
        entity: &'a Entity,
        filled: &[&Param],
        spells_key: bool,
        expr: &mut String,
        meaning: &mut String,
    ) {
        let catalog = self.catalog;
        let by_name = self.state.style == SlotStyle::Names;
        let has_long_key = entity.key.len() > 1;
        let mut names = String::new();
        let mut projection = String::new();
        let mut named_count = 0;
        let mut shown_count = 0;
        for field in shown_fields(entity) {
            self.state.mark_named(catalog, &field.name, &field.kind);
            shown_count += 1;
            // A key that is read from a header, such as the answer's date in imported catalogs, does not describe the row.
            let stands_in_for_key = entity.key.len() == 1 && matches!(field.source, FieldSource::Header(_));
            let is_spelled_key = by_name
                && has_long_key
                && entity.key.contains(&field.name)
                && (spells_key || filled.iter().any(|p| p.name == field.name));
            if stands_in_for_key || is_spelled_key {
                continue;
            }
            named_count += 1;
            if !by_name {
                add_item(&mut projection, 0, |out| self.push_slot(out, &field.name, &field.kind));
            }
            add_item(&mut names, 0, |out| {
                out.push_str(&field.name);
                write_type(out, &self.state.symbols, catalog, &field.kind, SlotUse::Field);
            });
        }
        add_omitted_count(&mut names, entity.fields.len() - shown_count);
        if !by_name {
            expr.push('[');
            expr.push_str(&projection.replace(", ", ","));
            expr.push(']');
        } else if named_count >= MIN_SHARED_FIELDS {
            let Some(number) = self.state.symbols.entity(&catalog.id, &entity.name) else { return };
            let first = *self.state.field_lists.entry(names.clone()).or_insert(number);
            if first != number {
                names.clear();
                names.push_str("fields as ");
                write_symbol(&mut names, 'e', first);
            }
        }
        add_phrase(meaning, |out| out.push_str(&names));
    }

    /// Appends the explanations of the slots of a multi-part key that no row has explained.
    fn name_key_slots(&mut self, out: &mut String) {
        if self.entity.key.len() == 1 {
            return;
        }
        let entity = self.entity;
        add_phrase(out, |out| {
            let list_start = out.len();
            for field in entity.key_fields() {
                add_item(out, list_start, |out| self.name_slot(out, &field.name, &field.kind, SlotUse::Filled));
            }
        });
    }

    /// Appends the explanations of a row's parameters: `p6 note markdown`, and `opt p3, p11 since date`.
    fn name_params(&mut self, out: &mut String, slots: &RowSlots<'_>) {
        add_phrase(out, |out| {
            let list_start = out.len();
            for param in &slots.filled {
                add_item(out, list_start, |out| self.name_slot(out, &param.name, &param.kind, SlotUse::Filled));
            }
        });
        if slots.optional.is_empty() {
            return;
        }
        add_phrase(out, |out| {
            out.push_str("opt ");
            let list_start = out.len();
            for param in &slots.optional {
                add_item(out, list_start, |out| {
                    let before = out.len();
                    self.name_slot(out, &param.name, &param.kind, SlotUse::Optional);
                    if out.len() == before {
                        self.push_slot(out, &param.name, &param.kind);
                    }
                });
            }
            add_omitted_count(out, slots.more);
        });
    }

    /// Appends `p11 since date`, unless a row has already explained the slot. In the name style, a slot without a written type
    /// needs no explanation.
    fn name_slot(&mut self, out: &mut String, name: &str, kind: &Type, slot_use: SlotUse) {
        let Some((number, false)) = self.state.mark_named(self.catalog, name, kind) else { return };
        let start = out.len();
        if self.state.style == SlotStyle::Symbols {
            write_symbol(out, 'p', number);
            out.push(' ');
        }
        out.push_str(name);
        let before_type = out.len();
        write_type(out, &self.state.symbols, self.catalog, kind, slot_use);
        if self.state.style == SlotStyle::Names && out.len() == before_type {
            out.truncate(start);
        }
    }
}
