//! Things that are read by a key: `GET` of a path that ends in a hole, with one row in its answer.
//! Invariant: of several paths that lead to one kind of row, the shortest is its home; of those the one with most under it.

use catalog::Kind;
use serde_json::Value;

use super::keys::place_of;
use super::{Mapper, Part, Plan, View};
use crate::api::answer::Shape;
use crate::draft::{Place, Ty};
use crate::names;
use crate::spec::Verb;

impl<'a> Mapper<'_, 'a> {
    pub(super) fn items(&mut self) {
        let is_item = |view: &View<'a>| {
            let one = matches!(view.seen.shape, Shape::One { .. } | Shape::Unsaid);
            view.op.verb == Verb::Get && view.path.ends_in_hole() && one
        };
        let mut found: Vec<usize> = (0..self.views.len()).filter(|at| is_item(&self.views[*at])).collect();
        let weight = |at: &usize| self.weight.get(&self.views[*at].path.keys.join("/")).copied().unwrap_or(0);
        let unsaid = |at: &usize| matches!(self.views[*at].seen.shape, Shape::Unsaid);
        found.sort_by_key(|at| (unsaid(at), self.views[*at].path.keys.len(), std::cmp::Reverse(weight(at)), *at));
        for view in found {
            self.item(view);
        }
    }

    fn item(&mut self, view: usize) {
        let (at, row) = match &self.views[view].seen.shape {
            Shape::One { at, schema } => (at.clone(), Some(*schema)),
            _ => (String::new(), None),
        };
        let holes = self.views[view].holes.clone();
        if let Some(row) = row {
            let ident = self.ident(row);
            let known = self.by_ident.get(&ident).cloned().unwrap_or_default();
            if let Some(ent) = known.into_iter().find(|ent| self.fits(*ent, view, row, false)) {
                // Another way to the same rows.
                self.add_row(ent, row);
                let verb = self.by_verb(view, ent);
                let mut plan = Plan::new(view, ent, Kind::Singleton, &verb, holes);
                plan.rows = (!at.is_empty()).then_some(at);
                return self.keep(plan);
            }
        }
        let stem = self.stem(row, view);
        let path = &self.views[view].path;
        let home = path.keys.clone();
        if let Some(same) = self.by_home.get(&home.join("/")).copied() {
            let verb = self.by_verb(view, same);
            return self.keep(Plan::new(view, same, Kind::Singleton, &verb, holes));
        }
        let parts = self.item_parts(view, row, &stem);
        let name = self.name_entity(&stem, view);
        let ent = self.add(view, name.clone(), Some(home), parts);
        match row {
            Some(row) => self.add_row(ent, row),
            None => self.unsaid(ent),
        }
        let names: Vec<String> = self.ents[ent].parts.iter().map(|part| part.name.clone()).collect();
        let mut plan = Plan::new(view, ent, Kind::Get, "get", names);
        plan.rows = (!at.is_empty()).then_some(at);
        self.keep(plan);
    }

    /// The specification does not say what comes: all of it is one field.
    pub(super) fn unsaid(&mut self, ent: usize) {
        let note = "the specification does not say what the answer holds";
        self.ents[ent].extra.push(("answer".to_owned(), Ty::named("json"), String::new()));
        self.ents[ent].note = Some(format!("LOOK: {note}."));
        let name = self.ents[ent].name.clone();
        self.guess(&name, format!("{note}: all of it is the field `answer`"));
    }

    /// The holes of an item's path as the parts of a key.
    pub(super) fn item_parts(&mut self, view: usize, row: Option<&'a Value>, stem: &[String]) -> Vec<Part> {
        let View { path, holes, .. } = &self.views[view];
        let last = path.holes.len().saturating_sub(1);
        let mut parts: Vec<Part> = Vec::new();
        for (at, scope) in holes.iter().enumerate() {
            let schema = self.hole_schema(view, at);
            let place = |prop: Option<super::rows::RowProp<'a>>, name: &str| match prop {
                Some(prop) => (place_of(&prop, name), self.key_type(prop.schema)),
                None => (Place::Asked, self.key_type(schema)),
            };
            if at != last {
                let found = row.and_then(|row| self.scope_place(row, scope, schema));
                let embedded = || row.and_then(|row| self.parent_place(row, &path.keys, at, scope));
                let (place, ty) = match found {
                    Some(found) => place(Some(found), scope),
                    None => (place(embedded(), scope).0, self.key_type(schema)),
                };
                parts.push(Part { name: scope.clone(), place, ty });
                continue;
            }
            let hole = &path.holes[at].name;
            let found = row.and_then(|row| self.final_place(row, hole, schema, stem));
            let own = found.as_ref().and_then(|prop| prop.path.rsplit('.').next()).map(names::name);
            let own = own.filter(|own| !holes[..last].contains(own)).unwrap_or_else(|| scope.clone());
            let (place, ty) = place(found, &own);
            parts.push(Part { name: own, place, ty });
        }
        parts
    }

    pub(super) fn keep(&mut self, mut plan: Plan) {
        if plan.kind == Kind::Singleton {
            plan.verb = self.free_verb(plan.ent, &plan.verb, plan.view);
        }
        self.done[plan.view] = true;
        self.plans.push(plan);
    }
}
