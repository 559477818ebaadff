//! Writes: creates, updates, deletes, and actions on a row or on the API as a whole.
//! Invariant: an action belongs to the entity that its path leads through, else to the nearest; its answer is read only where
//! the rows of a known or a new entity come in it.

use catalog::Kind;
use serde_json::Value;

use super::{Mapper, Part, Plan, View};
use crate::api::answer::Shape;
use crate::names;
use crate::spec::Verb;

/// How an operation's path lies to an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lies {
    /// At one of it.
    At,
    /// At all of it.
    Over,
    /// Below one of it.
    Below,
    /// Near it, at most.
    Beside,
}

impl<'a> Mapper<'_, 'a> {
    pub(super) fn writes(&mut self) {
        let rest: Vec<usize> = (0..self.views.len()).filter(|at| !self.done[*at]).collect();
        // Patches first: where there are both, `update` is the one that changes a part.
        let rank = |verb: Verb| match verb {
            Verb::Patch => 0,
            Verb::Post => 2,
            _ => 1,
        };
        let mut rest = rest;
        // What stands where its entity is at home takes the plain names.
        let stranger = |at: &usize| {
            let keys = self.views[*at].path.keys.join("/");
            !self.by_home.contains_key(&keys) && !self.by_home.contains_key(&format!("{keys}/{{}}"))
        };
        rest.sort_by_key(|at| (stranger(at), rank(self.views[*at].op.verb), *at));
        for view in rest {
            self.write(view);
        }
    }

    fn write(&mut self, view: usize) {
        let Some((ent, lies)) = self.owner(view).or_else(|| self.of_answer(view)) else {
            return self.refuse(view, "nothing that can be read belongs to it, and its answer holds no row");
        };
        let verb = self.views[view].op.verb;
        let taken = |verb: &str| self.ents[ent].verbs.contains(verb);
        let (kind, name) = match (lies, verb) {
            (Lies::At, Verb::Patch) if !taken("update") => (Kind::Update, "update".to_owned()),
            (Lies::At, Verb::Put) if !taken("update") => (Kind::Update, "update".to_owned()),
            (Lies::At, Verb::Put) if !taken("replace") => (Kind::Update, "replace".to_owned()),
            (Lies::At, Verb::Post) if !taken("update") && self.same_rows(view, ent) => {
                (Kind::Update, "update".to_owned())
            }
            (Lies::At, Verb::Delete) if !taken("delete") => (Kind::Delete, "delete".to_owned()),
            (Lies::Over, Verb::Post) if !taken("create") && self.creates(view, ent) => {
                (Kind::Create, "create".to_owned())
            }
            // `conversations.create`, which answers with one.
            (Lies::Beside, Verb::Post) if !taken("create") && self.makes(view, ent) => {
                (Kind::Create, "create".to_owned())
            }
            (Lies::Beside, Verb::Post) => {
                let kind = self.called_kind(view).unwrap_or(Kind::Action);
                (kind, self.action_verb(view, ent))
            }
            _ => (Kind::Action, self.action_verb(view, ent)),
        };
        let by_instance = matches!(lies, Lies::At | Lies::Below);
        let mut holes = self.views[view].holes.clone();
        let instance = by_instance && self.take_key(ent, &mut holes);
        if kind != Kind::Action && by_instance && !instance {
            let verb = self.action_verb(view, ent);
            return self.act(Plan::new(view, ent, Kind::Action, &verb, holes));
        }
        let mut plan = Plan::new(view, ent, kind, &name, holes);
        plan.instance = instance;
        self.act(plan);
    }

    fn act(&mut self, mut plan: Plan) {
        self.answer_of(&mut plan);
        plan.verb = self.free_verb(plan.ent, &plan.verb, plan.view);
        self.keep(plan);
    }

    /// Puts the names of the key's parts into the holes that lead to the instance; false where some part has no hole.
    fn take_key(&self, ent: usize, holes: &mut [String]) -> bool {
        let parts = &self.ents[ent].parts;
        let home = self.ents[ent].home.as_deref().unwrap_or_default();
        let count = home.iter().filter(|key| *key == "{}").count();
        if count != parts.len() || count == 0 || holes.len() < count {
            return false;
        }
        for (hole, part) in holes.iter_mut().zip(parts) {
            part.name.clone_into(hole);
        }
        // A further hole must not be taken for a part of the key.
        for hole in holes.iter_mut().skip(count) {
            if parts.iter().any(|part| part.name == *hole) {
                hole.push_str("_2");
            }
        }
        true
    }

    /// The entity that the path leads to or through.
    fn owner(&self, view: usize) -> Option<(usize, Lies)> {
        let View { path, op, .. } = &self.views[view];
        let keys = &path.keys;
        if let Some(ent) = self.by_home.get(&keys.join("/")) {
            return Some((*ent, Lies::At));
        }
        if let Some(ent) = self.by_home.get(&format!("{}/{{}}", keys.join("/"))) {
            return Some((*ent, Lies::Over));
        }
        if let Some(ent) =
            self.by_list.get(&keys.join("/")).filter(|ent| op.verb == Verb::Post && self.creates(view, **ent))
        {
            return Some((*ent, Lies::Over));
        }
        for end in (1..keys.len()).rev() {
            let prefix = keys[..end].join("/");
            if let Some(ent) = self.by_home.get(&prefix) {
                let alone = self.ents[*ent].home.as_ref().is_some_and(|home| !home.contains(&"{}".to_owned()));
                return Some((*ent, if alone { Lies::Beside } else { Lies::Below }));
            }
            if let Some(ent) = self.by_list.get(&prefix).or_else(|| self.by_home.get(&format!("{prefix}/{{}}"))) {
                return Some((*ent, Lies::Beside));
            }
        }
        self.nearest(view).map(|ent| (ent, Lies::Beside))
    }

    /// Of the same tag, else of the same beginning of the path.
    fn nearest(&self, view: usize) -> Option<usize> {
        let View { op, path, .. } = &self.views[view];
        let tag = op.tags.first().copied().unwrap_or_default();
        if let Some(known) = self.by_tag.get(tag) {
            return Some(*known);
        }
        let shared = |ent: &super::Ent<'a>| {
            let home = ent.home.as_deref().unwrap_or_default();
            home.iter()
                .zip(&path.keys)
                .take_while(|(a, b)| a == b && *a != "{}" && !crate::api::path::is_root_word(a))
                .count()
        };
        let best = self.ents.iter().enumerate().max_by_key(|(at, ent)| (shared(ent), std::cmp::Reverse(*at)));
        best.filter(|(_, ent)| shared(ent) > 0).map(|(at, _)| at)
    }

    /// An entity made of what a write answers with, where nothing reads it.
    fn of_answer(&mut self, view: usize) -> Option<(usize, Lies)> {
        let row = match &self.views[view].seen.shape {
            Shape::One { schema, .. } => *schema,
            _ => {
                // Nothing to read at all: the writes stand together under a name.
                let op = self.views[view].op;
                let stem =
                    op.tags.first().map(|tag| names::words(tag)).filter(|words| !words.is_empty() && words.len() <= 3);
                let stem = stem.unwrap_or_else(|| self.stem(None, view));
                let name = self.name_entity(&stem, view);
                return Some((self.add(view, name, None, vec![Self::served()]), Lies::Beside));
            }
        };
        let stem = self.stem(Some(row), view);
        let sure = self.guessed_place(row, &stem).filter(|(prop, sure)| *sure && prop.required);
        let part = match sure {
            Some(_) => self.row_key(row, &stem, ""),
            None => None,
        };
        let part: Part = part.unwrap_or_else(Self::served);
        let name = self.name_entity(&stem, view);
        let ent = self.add(view, name, None, vec![part]);
        self.add_row(ent, row);
        Some((ent, Lies::Beside))
    }

    /// Whether the answer is a row of this entity, or says nothing against it.
    fn same_rows(&self, view: usize, ent: usize) -> bool {
        match &self.views[view].seen.shape {
            Shape::One { schema, .. } => {
                let ident = self.ident(schema);
                ident.is_empty() || self.ents[ent].idents.contains(&ident)
            }
            _ => true,
        }
    }

    fn makes(&self, view: usize, ent: usize) -> bool {
        let says = names::words(self.views[view].path.last_word()).first().is_some_and(|word| word == "create");
        let row = match &self.views[view].seen.shape {
            Shape::One { schema, .. } => self.ident(schema),
            _ => return false,
        };
        says && self.ents[ent].idents.contains(&row)
    }

    /// What `chat.postMessage` and `chat.delete` say that they do: their names are all there is to tell by.
    fn called_kind(&self, view: usize) -> Option<Kind> {
        let View { path, op, .. } = &self.views[view];
        let called = op.path.rsplit('/').next().is_some_and(|last| last.contains('.') && !last.contains('{'));
        let words = names::words(path.last_word());
        let first = words.first().filter(|_| called)?;
        match first.as_str() {
            "delete" if words.len() == 1 => Some(Kind::Delete),
            "update" | "edit" if words.len() == 1 => Some(Kind::Update),
            "create" | "open" | "insert" if words.len() == 1 => Some(Kind::Create),
            "post" | "send" => Some(Kind::Create),
            _ => None,
        }
    }

    fn creates(&self, view: usize, ent: usize) -> bool {
        let words = names::words(self.views[view].op.id);
        let otherwise = ["delete", "remove", "search", "query", "batch", "bulk", "export"];
        let says =
            words.iter().any(|word| matches!(word.as_str(), "create" | "add" | "insert" | "post" | "new" | "open"));
        let not = words.iter().any(|word| otherwise.contains(&word.as_str()));
        says || (!not && self.same_rows(view, ent)) || self.views[view].op.id.is_empty()
    }

    /// What is read from a write's answer.
    fn answer_of(&mut self, plan: &mut Plan) {
        let (at, row) = match &self.views[plan.view].seen.shape {
            Shape::One { at, schema } => (at.clone(), *schema),
            _ => {
                plan.silent = matches!(plan.kind, Kind::Create | Kind::Update);
                return;
            }
        };
        let Some(ent) = self.answered(plan, row) else {
            plan.silent = matches!(plan.kind, Kind::Create | Kind::Update);
            return;
        };
        plan.returns = (ent != plan.ent || plan.kind == Kind::Action || plan.kind == Kind::Delete).then_some(ent);
        plan.rows = (!at.is_empty()).then_some(at);
    }

    fn answered(&mut self, plan: &Plan, row: &'a Value) -> Option<usize> {
        if plan.kind == Kind::Delete {
            return None;
        }
        let asked = |ent: usize, part: &Part| {
            let of_instance = plan.instance && ent == plan.ent;
            of_instance || plan.holes.contains(&part.name)
        };
        let fits = |ent: usize| {
            let own = &self.ents[ent];
            own.extra.is_empty()
                && own.parts.iter().all(|part| asked(ent, part) || self.holds(row, &part.place, &part.name))
        };
        let ident = self.ident(row);
        let own = &self.ents[plan.ent];
        let same = own.idents.contains(&ident) || own.rows.iter().any(|known| std::ptr::eq(*known, row));
        if same && fits(plan.ent) {
            return Some(plan.ent);
        }
        let known = self.by_ident.get(&ident).cloned().unwrap_or_default();
        if let Some(ent) = known.into_iter().find(|ent| fits(*ent)) {
            return Some(ent);
        }
        if ident.is_empty()
            && matches!(plan.kind, Kind::Create | Kind::Update)
            && fits(plan.ent)
            && self.alike(plan.ent, row)
        {
            self.add_row(plan.ent, row);
            return Some(plan.ent);
        }
        self.result_entity(plan, row)
    }

    /// Whether a row without a name has most of what the entity's rows have.
    pub(super) fn alike(&self, ent: usize, row: &'a Value) -> bool {
        let Some(known) = self.ents[ent].rows.first() else { return false };
        let (known, new) = (self.reader.object(known), self.reader.object(row));
        let shared = new.props.keys().filter(|name| known.props.contains_key(*name)).count();
        shared * 2 >= new.props.len().max(1)
    }

    /// What an action answers with, where that is more than a word of success.
    fn result_entity(&mut self, plan: &Plan, row: &'a Value) -> Option<usize> {
        let says =
            ["ok", "success", "message", "status", "error", "code", "errors", "result", "detail", "msg", "warnings"];
        let object = self.reader.object(row);
        let more = object.props.keys().filter(|name| !says.contains(&names::snake(name).as_str())).count();
        if more == 0 {
            return None;
        }
        let ident = self.ident(row);
        let stem: Vec<String> = if ident.is_empty() {
            let verb = names::words(&plan.verb);
            names::words(&self.ents[plan.ent].name)
                .into_iter()
                .chain(verb)
                .chain(["result".to_owned()])
                .take(5)
                .collect()
        } else {
            names::words(&ident)
        };
        let name = self.name_entity(&stem, plan.view);
        let ent = self.add(plan.view, name, None, vec![Self::served()]);
        self.add_row(ent, row);
        Some(ent)
    }
}
