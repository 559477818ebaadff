//! Single things at a path that ends in a word: the caller's own account, a repository's licence, the weather of a place.
//! Invariant: what was asked for is its key; where nothing is asked for there is one of it.

use catalog::Kind;
use serde_json::Value;

use super::{Mapper, Part, Plan, View, verbs};
use crate::api::answer::Shape;
use crate::draft::Place;
use crate::names;
use crate::spec::{self, In, Verb};

impl<'a> Mapper<'_, 'a> {
    pub(super) fn singles(&mut self) {
        let found: Vec<usize> = (0..self.views.len()).filter(|at| !self.done[*at] && self.is_single(*at)).collect();
        for view in found {
            match &self.views[view].seen.shape {
                Shape::One { at, schema } => {
                    let (at, schema) = (at.clone(), *schema);
                    self.single(view, at, Some(schema));
                }
                Shape::Unsaid => self.single(view, String::new(), None),
                Shape::Value => self.refuse(view, "it answers with a bare value, not with an object or a list"),
                Shape::Nothing(why) => {
                    let why = why.clone();
                    self.refuse(view, why);
                }
                _ => {}
            }
        }
    }

    fn is_single(&self, at: usize) -> bool {
        let view = &self.views[at];
        let asks = view.op.verb == Verb::Post
            && matches!(view.seen.shape, Shape::One { .. })
            && verbs::only_asks(view.op, &view.path);
        view.op.verb == Verb::Get || asks
    }

    fn single(&mut self, view: usize, at: String, row: Option<&'a Value>) {
        let rows = (!at.is_empty()).then_some(at);
        let holes = self.views[view].holes.clone();
        if let Some(row) = row {
            let known = self.by_ident.get(&self.ident(row)).cloned().unwrap_or_default();
            let keyed = |ent: &usize| self.ents[*ent].extra.is_empty() && self.fits(*ent, view, row, false);
            if let Some(ent) = known.into_iter().find(keyed) {
                self.add_row(ent, row);
                let by_key = self.by_key_param(view, ent, row);
                let verb = self.by_verb(view, ent);
                let kind = if by_key.is_some() { Kind::Get } else { Kind::Singleton };
                let mut plan = Plan::new(view, ent, kind, &verb, holes);
                if let Some(keyed) = by_key {
                    plan.keyed.push(keyed);
                    plan.verb = "get".to_owned();
                    self.ents[ent].home.get_or_insert(self.views[view].path.keys.clone());
                }
                plan.rows = rows;
                return self.keep(plan);
            }
        }
        let stem = self.stem(row, view);
        let (mut parts, keyed) = self.asked_parts(view, row);
        let alone = parts.is_empty();
        if alone {
            let label = names::pascal(&stem);
            let sure = row.and_then(|row| self.guessed_place(row, &stem)).filter(|(prop, sure)| *sure && prop.required);
            let part = match (sure, row) {
                (Some(_), Some(row)) => self.row_key(row, &stem, &label),
                _ => None,
            };
            parts.push(part.unwrap_or_else(Self::served));
        }
        let name = self.name_entity(&stem, view);
        let home = self.views[view].path.keys.clone();
        let home = (!self.by_home.contains_key(&home.join("/"))).then_some(home);
        let ent = self.add(view, name, home, parts);
        match row {
            Some(row) => self.add_row(ent, row),
            None => self.unsaid(ent),
        }
        let kind = if alone { Kind::Singleton } else { Kind::Get };
        let verb = if alone { "read" } else { "get" };
        let mut plan = Plan::new(view, ent, kind, verb, holes);
        (plan.rows, plan.keyed) = (rows, keyed);
        self.keep(plan);
    }

    /// The one parameter of the query that asks for a row by its key, where nothing else reads it by that: `users.info?user=U1`.
    fn by_key_param(&self, view: usize, ent: usize, row: &'a Value) -> Option<(String, String)> {
        let [part] = self.ents[ent].parts.as_slice() else { return None };
        let known = self.plans.iter().any(|plan| plan.kind == Kind::Get && plan.ent == ent);
        let View { op, holes, .. } = &self.views[view];
        if known || !holes.is_empty() || op.verb != Verb::Get {
            return None;
        }
        let path = match &part.place {
            Place::Own => &part.name,
            Place::At(path) => path,
            _ => return None,
        };
        let own = names::words(&self.ents[ent].name);
        let mut asked =
            op.params.iter().filter(|p| p.place == In::Query && !self.is_credential(p) && self.fixed(p).is_none());
        // Named after the entity, or after what the answer calls it.
        let called = match &self.views[view].seen.shape {
            Shape::One { at, .. } => names::snake(at),
            _ => String::new(),
        };
        let named = |p: &&spec::Param<'a>| {
            let name = names::singular(&names::snake(p.name));
            name == own.join("_") || name == called
        };
        let required: Vec<_> = asked.clone().filter(|p| p.required).collect();
        let param = match required.as_slice() {
            [] => asked.find(named)?,
            [only] => only,
            _ => return None,
        };
        let own = if named(&param) { names::words(param.name) } else { own.clone() };
        let found = self.final_place(row, param.name, param.schema, &own)?;
        (found.path == *path).then(|| (param.name.to_owned(), part.name.clone()))
    }

    /// Everything that must be given to ask for it; and which of that are parameters of the query.
    fn asked_parts(&self, view: usize, row: Option<&'a Value>) -> (Vec<Part>, Vec<(String, String)>) {
        let View { op, holes, .. } = &self.views[view];
        let mut parts: Vec<Part> = Vec::new();
        for (at, name) in holes.iter().enumerate() {
            let schema = self.hole_schema(view, at);
            let own = row.filter(|row| self.reader.is_object(row) && self.holds(row, &Place::Own, name));
            let exact = own.filter(|row| {
                let prop = self.reader.object(row).props.get(name.as_str()).map(|prop| self.reader.scalar(prop.schema));
                prop.flatten().is_some_and(|kind| Some(kind) == self.reader.scalar(schema))
            });
            let place = if exact.is_some() { Place::Own } else { Place::Asked };
            parts.push(Part { name: name.clone(), place, ty: self.key_type(schema) });
        }
        let mut keyed = Vec::new();
        if op.verb != Verb::Get {
            return (parts, keyed);
        }
        for param in op.params.iter().filter(|p| p.place == In::Query && p.required).take(4) {
            let name = names::name(param.name);
            let fixed = self.fixed(param).is_some() || self.is_credential(param);
            let scalar = self.reader.scalar(param.schema).is_some();
            if fixed || !scalar || parts.iter().any(|part| part.name == name) {
                continue;
            }
            keyed.push((param.name.to_owned(), name.clone()));
            parts.push(Part { name, place: Place::Asked, ty: self.key_type(param.schema) });
        }
        (parts, keyed)
    }
}
