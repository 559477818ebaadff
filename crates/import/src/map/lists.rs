//! Lists: `GET`, or a `POST` that only asks, with many rows in its answer.
//! Invariant: no two lists of one entity need the same; what would be the second is an entity of its own.

use std::collections::BTreeSet;

use catalog::Kind;
use serde_json::Value;

use super::{Mapper, Part, Plan, View, verbs};
use crate::api::answer::Shape;
use crate::draft::{Place, Ty};
use crate::names;
use crate::spec::{In, Scalar, Verb};

const TEXT: [&str; 10] =
    ["q", "query", "search", "search_term", "text", "term", "keyword", "keywords", "search_text", "search_query"];

impl<'a> Mapper<'_, 'a> {
    pub(super) fn lists(&mut self) {
        let lists = |view: &View<'a>| {
            let many = matches!(view.seen.shape, Shape::Rows { .. } | Shape::Values { .. } | Shape::Entries { .. });
            let asks =
                view.op.verb == Verb::Get || (view.op.verb == Verb::Post && verbs::only_asks(view.op, &view.path));
            let unsaid = matches!(view.seen.shape, Shape::Unsaid) && names::is_plural(view.path.last_word());
            let unsaid = unsaid && view.op.verb == Verb::Get && !view.path.ends_in_hole();
            (many && asks) || unsaid
        };
        let mut found: Vec<usize> =
            (0..self.views.len()).filter(|at| !self.done[*at] && lists(&self.views[*at])).collect();
        // Home lists first: an entity's plain list is the one beside its get; then the shortest.
        let is_home = |at: &usize| {
            let keys = &self.views[*at].path.keys;
            !self.by_home.contains_key(&format!("{}/{{}}", keys.join("/")))
        };
        found.sort_by_key(|at| {
            (is_home(at), self.views[*at].op.verb != Verb::Get, self.views[*at].path.keys.len(), *at)
        });
        for view in found {
            self.list(view);
        }
    }

    fn list(&mut self, view: usize) {
        let (at, row, entries) = match &self.views[view].seen.shape {
            Shape::Rows { at, item } => (at.clone(), Some(*item), false),
            Shape::Entries { at, item } => (at.clone(), Some(*item), true),
            Shape::Values { at, item } => return self.values(view, at.clone(), Some(item)),
            _ => return self.values(view, String::new(), None),
        };
        let Some(row) = row else { return };
        let mut needs = self.needs(view);
        let mut ent = if entries { None } else { self.list_entity(view, row, &needs) };
        if ent.is_none() && !entries {
            ent = self.told_apart(view, row, &mut needs);
        }
        let ent = match ent.or_else(|| self.new_list(view, row, entries)) {
            Some(ent) => ent,
            None => return self.refuse(view, "its rows have nothing that could identify them"),
        };
        self.add_row(ent, row);
        self.by_list.entry(self.views[view].path.keys.join("/")).or_insert(ent);
        let holes = self.views[view].holes.clone();
        let rows = (!at.is_empty()).then_some(at);
        let required = self.text_param(view, true);
        if let Some(text) = required {
            let needs: BTreeSet<String> = needs.into_iter().filter(|name| *name != names::name(&text)).collect();
            if self.ents[ent].searches.contains(&needs) {
                return self.refuse(view, format!("{} has a search that needs the same", self.ents[ent].name));
            }
            self.ents[ent].searches.push(needs);
            let mut plan = Plan::new(view, ent, Kind::Search, "search", holes);
            (plan.rows, plan.text) = (rows, Some(text));
            return self.keep(plan);
        }
        self.ents[ent].queries.push(needs.clone());
        let mut plan = Plan::new(view, ent, Kind::Query, "list", holes.clone());
        plan.rows = rows.clone();
        plan.entries = entries.then(|| "key".to_owned());
        // Words may be searched for where a list takes them too.
        let search = self.text_param(view, false).filter(|_| !self.ents[ent].searches.contains(&needs) && !entries);
        plan.without = search.clone();
        self.keep(plan);
        if let Some(text) = search {
            self.ents[ent].searches.push(needs);
            let mut plan = Plan::new(view, ent, Kind::Search, "search", holes);
            (plan.rows, plan.text) = (rows, Some(text));
            self.plans.push(plan);
        }
    }

    /// Rows of a known entity that another list gives for the same scope: what the path says of them names the scope, as in
    /// `Task{subtasks_of="7"}`.
    fn told_apart(&mut self, view: usize, row: &'a Value, needs: &mut BTreeSet<String>) -> Option<usize> {
        let path = &self.views[view].path;
        let last = path.holes.len().checked_sub(1)?;
        let name = names::name(&format!("{}_of", names::snake(path.last_word())));
        if path.ends_in_hole() || self.views[view].holes.contains(&name) {
            return None;
        }
        let before = std::mem::replace(&mut self.views[view].holes[last], name);
        let renamed = self.needs(view);
        let found = self.list_entity(view, row, &renamed);
        match found {
            Some(_) => *needs = renamed,
            None => self.views[view].holes[last] = before,
        }
        found
    }

    fn text_param(&self, view: usize, required: bool) -> Option<String> {
        let op = self.views[view].op;
        let fits = |p: &&crate::spec::Param<'a>| {
            let text = self.reader.scalar(p.schema) == Some(Scalar::Text);
            p.place == In::Query && p.required == required && text && self.reader.open(p.schema).get("enum").is_none()
        };
        let find = |name: &&str| op.params.iter().filter(fits).find(|p| names::is_snake(p.name, name));
        TEXT.iter().find_map(find).map(|p| p.name.to_owned())
    }

    /// The known entity that these are rows of.
    fn list_entity(&self, view: usize, row: &'a Value, needs: &BTreeSet<String>) -> Option<usize> {
        let path = &self.views[view].path;
        let free = |ent: &usize| self.fits(*ent, view, row, true) && !self.ents[*ent].queries.contains(needs);
        let home = self.by_home.get(&format!("{}/{{}}", path.keys.join("/"))).copied();
        if let Some(ent) = home.filter(|ent| free(ent) && self.ents[*ent].extra.is_empty()) {
            return Some(ent);
        }
        let ident = self.ident(row);
        let mut known: Vec<usize> = self.by_ident.get(&ident).into_iter().flatten().copied().filter(free).collect();
        known.retain(|ent| self.ents[*ent].extra.is_empty());
        // The one whose home shares the most of the path.
        let shared = |ent: &usize| {
            let home = self.ents[*ent].home.as_deref().unwrap_or_default();
            home.iter().zip(&path.keys).take_while(|(a, b)| a == b).count()
        };
        let best = known.into_iter().max_by_key(|ent| (shared(ent), std::cmp::Reverse(*ent)));
        // Rows of another name at a path that ends in the entity's: `/search/issues`.
        let named = self.first_named.get(&names::singular(&names::snake(path.last_word()))).copied();
        best.or_else(|| named.filter(|ent| self.ents[*ent].extra.is_empty() && free(ent) && self.alike(*ent, row)))
    }

    fn new_list(&mut self, view: usize, row: &'a Value, entries: bool) -> Option<usize> {
        let mut stem = self.stem(Some(row), view);
        let item = self.item_of_list(view);
        let last = names::words(self.views[view].path.last_word());
        let taken = self.taken.contains(&names::pascal(&stem).to_ascii_lowercase());
        let says: Vec<String> = last.iter().map(|word| names::singular(word)).collect();
        // A second kind of the same rows is named by what its path says of them: `/gists/starred`.
        if taken && !says.is_empty() && says.last() != stem.last() && says.len() <= 3 {
            let first = says.iter().filter(|word| !stem.contains(word)).cloned();
            stem = first.chain(stem.clone()).collect();
        }
        let label = names::pascal(&stem);
        let parts = match item {
            _ if entries => vec![Part { name: "key".to_owned(), place: Place::Own, ty: Ty::named("string") }],
            Some(item) => {
                let parts = self.item_parts(item, Some(row), &stem);
                let whole = parts.len() == 1 && parts[0].place == Place::Asked;
                if whole { vec![self.row_key(row, &stem, &label)?] } else { parts }
            }
            None => match self.row_key(row, &stem, &label) {
                Some(part) => vec![part],
                None => {
                    self.guess(&label, "its rows have no field that could identify them".to_owned());
                    vec![Self::served()]
                }
            },
        };
        let home = item.map(|item| self.views[item].path.keys.clone());
        let home = home.filter(|home| !self.by_home.contains_key(&home.join("/")));
        let name = self.name_entity(&stem, view);
        Some(self.add(view, name, home, parts))
    }

    /// An operation whose path is this list's with a hole after it.
    fn item_of_list(&self, view: usize) -> Option<usize> {
        let keys = &self.views[view].path.keys;
        let longer = |other: &View<'a>| other.path.keys.len() == keys.len() + 1 && other.path.ends_in_hole();
        let inside = |other: &View<'a>| longer(other) && other.path.keys.starts_with(keys);
        // Only where something lies there: most lists have nothing behind them.
        self.weight.get(&format!("{}/{{}}", keys.join("/")))?;
        self.views.iter().position(inside)
    }

    /// Values that are no objects, or of which nothing is said: each is a field.
    fn values(&mut self, view: usize, at: String, item: Option<&'a Value>) {
        let mut stem: Vec<String> = names::words(self.views[view].path.last_word());
        if let Some(last) = stem.last_mut() {
            *last = names::singular(last);
        }
        let name = self.name_entity(&stem, view);
        let scalar = item.and_then(|item| self.reader.scalar(item)).filter(|scalar| *scalar != Scalar::Boolean);
        let ent = match (item, scalar) {
            (Some(item), Some(_)) => {
                let ty = self.key_type(item);
                let part = Part { name: "value".to_owned(), place: Place::Own, ty };
                self.add(view, name, None, vec![part])
            }
            _ => {
                let ent = self.add(view, name, None, vec![Self::served()]);
                self.ents[ent].extra.push(("value".to_owned(), Ty::named("json"), "value".to_owned()));
                let name = self.ents[ent].name.clone();
                self.guess(
                    &name,
                    "the specification does not say what its rows hold: each is the field `value`".to_owned(),
                );
                ent
            }
        };
        let needs = self.needs(view);
        self.ents[ent].queries.push(needs);
        let mut plan = Plan::new(view, ent, Kind::Query, "list", self.views[view].holes.clone());
        plan.rows = (!at.is_empty()).then_some(at);
        plan.wrap = Some("value".to_owned());
        self.keep(plan);
    }
}
