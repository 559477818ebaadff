//! Reads: connections and lists as queries, fields with a key as gets, the rest as single things; connections of entities as
//! relations.
//! Invariant: every argument that must be given is a parameter; no two lists of one entity need the same.

use catalog::Kind;

use super::schema::{Arg, Field, Form};
use super::{Mapper, types};
use crate::draft::{Call, Capability, PageForm, Paging, Param, Relation, Ty, Via};
use crate::names;

/// Connections of entities that become relations; a large schema has thousands.
const MAX_RELATIONS: usize = 600;

/// Arguments of a document, as it declares and as it passes them.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pub declares: Vec<String>,
    pub passes: Vec<String>,
}

impl Passed {
    pub fn add(&mut self, arg: &str, variable: &str, ty: &str) {
        self.declares.push(format!("${variable}: {ty}"));
        self.passes.push(format!("{arg}: ${variable}"));
    }

    pub fn declared(&self) -> String {
        if self.declares.is_empty() { String::new() } else { format!("({})", self.declares.join(", ")) }
    }

    pub fn passed(&self) -> String {
        if self.passes.is_empty() { String::new() } else { format!("({})", self.passes.join(", ")) }
    }
}

impl Mapper<'_> {
    pub(super) fn reads(&mut self, queries: &[Field]) {
        // What is read by a field of its own needs no `node`.
        let (last, first): (Vec<&Field>, Vec<&Field>) = queries.iter().partition(|field| field.name == "node");
        for field in first.into_iter().chain(last) {
            let label = format!("query {}", field.name);
            if let Some(connection) = self.connection(&field.ty.name) {
                let (node, edges) = (connection.node.name.clone(), connection.edges);
                match self.ents.contains_key(&node) {
                    true => self.list(field, &node, Some(edges)),
                    false => self.refuse(label, format!("nothing identifies the rows of {node}")),
                }
                continue;
            }
            match self.schema.get(&field.ty.name).map(|def| def.form.clone()) {
                Some(Form::Object) if !self.ents.contains_key(&field.ty.name) => {
                    self.refuse(label, format!("nothing identifies a row of {}", field.ty.name));
                }
                Some(Form::Object) if field.ty.list => self.list(field, &field.ty.name, None),
                Some(Form::Object) => self.one(field),
                Some(Form::Interface | Form::Union) if field.name == "node" && self.has_node() => self.nodes(label),
                Some(Form::Interface | Form::Union) => {
                    self.refuse(label, format!("it answers with any of several types ({})", field.ty.name));
                }
                _ => self.refuse(label, "it answers with a bare value, not with an object or a list"),
            }
        }
    }

    /// A get of everything that has an id and no get of its own.
    fn nodes(&mut self, label: String) {
        let all: Vec<String> = self.ents.keys().cloned().collect();
        let mut any = false;
        for name in all {
            let node = self.schema.get(&name).is_some_and(|def| def.implements.iter().any(|i| i == "Node"));
            let Some(ent) = self.ents.get(&name).filter(|ent| node && ent.get.is_none() && ent.entity.key == ["id"])
            else {
                continue;
            };
            let entity = ent.entity.name.clone();
            let document = format!("query($id: ID!) {{ node(id: $id) {{ ... on {name} {{ ...{entity} }} }} }}");
            let mut made = self.new_capability(Kind::Get, &entity, "get", label.clone());
            made.call = Call::Graphql { document, variables: Vec::new() };
            made.rows = Some("data.node".to_owned());
            self.add(made);
            any = true;
            if let Some(ent) = self.ents.get_mut(&name) {
                ent.get = Some("node".to_owned());
            }
        }
        if !any {
            self.refuse(label, "everything that has an id is read by a field of its own");
        }
    }

    /// An argument as a parameter with this name; its type as the document declares it.
    pub(super) fn param(&self, arg: &Arg, name: String) -> Param {
        let required = arg.ty.required && !arg.default;
        let ty = types::input(self.schema, &arg.ty, if required { 2 } else { 1 });
        Param { name, ty, required, role: None, list: None, as_text: false }
    }

    fn one(&mut self, field: &Field) {
        let label = format!("query {}", field.name);
        let Some(ent) = self.ents.get(&field.ty.name) else { return };
        let entity = ent.entity.name.clone();
        let key = ent.entity.key.first().cloned().unwrap_or_default();
        let required: Vec<&Arg> = field.args.iter().filter(|arg| arg.ty.required && !arg.default).collect();
        // Most say the argument as optional and mean it.
        let by_key = match required.as_slice() {
            [only] => {
                only.name == key || only.name == format!("{}Id", names_lower(&field.ty.name)) || only.name == "id"
            }
            [] => field.args.iter().any(|arg| arg.name == key) && field.args.len() <= 3,
            _ => false,
        };
        let get = by_key && ent.get.is_none() && ent.entity.key.len() == 1;
        let mut passed = Passed::default();
        let (kind, verb) = match get {
            true => (Kind::Get, "get".to_owned()),
            false => (Kind::Singleton, self.free_verb(&field.ty.name, &field.name)),
        };
        let mut made = self.new_capability(kind, &entity, &verb, label);
        let keyed = required.first().map_or(key.as_str(), |arg| arg.name.as_str()).to_owned();
        for arg in &field.args {
            if get && arg.name == keyed {
                passed.add(&arg.name, &key, &arg.ty.text);
            } else if !get || arg.ty.required {
                let name = names::name(&arg.name);
                passed.add(&arg.name, &name, &arg.ty.text);
                made.params.push(self.param(arg, name));
            }
        }
        let document = format!("query{} {{ {}{} {{ ...{entity} }} }}", passed.declared(), field.name, passed.passed());
        made.call = Call::Graphql { document, variables: Vec::new() };
        made.rows = Some(format!("data.{}", field.name));
        made.about = if get { String::new() } else { names::sentence(&field.about, 72) };
        self.add(made);
        if get && let Some(ent) = self.ents.get_mut(&field.ty.name) {
            ent.get = Some(field.name.clone());
        }
    }

    pub(super) fn free_verb(&mut self, of: &str, verb: &str) -> String {
        let Some(ent) = self.ents.get_mut(of) else { return names::method(verb) };
        let own = names::snake(&ent.entity.name);
        let verb = names::snake(verb);
        let verb = if verb == own { "read".to_owned() } else { verb };
        names::unique(&mut ent.verbs, names::method(&verb))
    }

    /// `edges` of a connection; `None` for a plain list.
    fn list(&mut self, field: &Field, node: &str, edges: Option<bool>) {
        let Some(ent) = self.ents.get(node) else { return };
        let entity = ent.entity.name.clone();
        let text = field.args.iter().find(|arg| {
            let words = matches!(arg.name.as_str(), "query" | "q" | "search" | "term" | "text");
            words && arg.ty.name == "String" && arg.ty.required && !arg.ty.list
        });
        let kind = if text.is_some() { Kind::Search } else { Kind::Query };
        let mut needs: Vec<String> =
            field.args.iter().filter(|a| a.ty.required && !a.default).map(|a| a.name.clone()).collect();
        needs.retain(|name| text.is_none_or(|text| text.name != *name));
        needs.sort();
        let known = if kind == Kind::Query { &ent.queries } else { &ent.searches };
        let label = format!("query {}", field.name);
        if known.contains(&needs) {
            return self
                .refuse(label, format!("{entity} has a list that needs the same; make it one with optional filters"));
        }
        if let Some(ent) = self.ents.get_mut(node) {
            let known = if kind == Kind::Query { &mut ent.queries } else { &mut ent.searches };
            known.push(needs);
        }
        let verb = if kind == Kind::Query { "list" } else { "search" };
        let mut made = self.new_capability(kind, &entity, verb, label);
        made.about = names::sentence(&field.about, 72);
        made.text = text.map(|arg| names::name(&arg.name));
        let passed = self.listed(&mut made, field, edges, &format!("data.{}", field.name));
        let inner = inner(&entity, edges);
        let document = format!("query{} {{ {}{} {{ {inner} }} }}", passed.declared(), field.name, passed.passed());
        made.call = Call::Graphql { document, variables: Vec::new() };
        self.add(made);
    }

    /// Arguments, rows and pages of a list that lies at this path of the answer.
    fn listed(&self, made: &mut Capability, field: &Field, edges: Option<bool>, at: &str) -> Passed {
        let mut passed = Passed::default();
        let has = |name: &str| field.args.iter().find(|arg| arg.name == name);
        let pages = edges.is_some() && has("after").is_some() && has("first").is_some();
        for arg in &field.args {
            let paging = matches!(arg.name.as_str(), "first" | "after" | "last" | "before") && edges.is_some();
            if pages && matches!(arg.name.as_str(), "first" | "after") {
                passed.add(&arg.name, &arg.name, &arg.ty.text);
            } else if made.text.as_deref() == Some(arg.name.as_str()) {
                passed.add(&arg.name, &names::name(&arg.name), &arg.ty.text);
            } else if !paging || (arg.ty.required && !arg.default) {
                let mut name = names::name(&arg.name);
                if made.params.iter().any(|param| param.name == name) {
                    name = format!("{name}_2");
                }
                passed.add(&arg.name, &name, &arg.ty.text);
                made.params.push(self.param(arg, name));
            }
        }
        match edges {
            None => made.rows = Some(at.to_owned()),
            Some(edges) => {
                if edges {
                    made.rows = Some(format!("{at}.edges"));
                    made.item = Some("node".to_owned());
                } else if !pages {
                    made.rows = Some(format!("{at}.nodes"));
                }
            }
        }
        if pages {
            let form = PageForm::Connection { at: at.to_owned(), send: "after".to_owned() };
            made.paging =
                Some(Paging { form, size: Some(("first".to_owned(), 50)), total: None, more: None, in_body: false });
        }
        passed
    }

    /// Connections and lists that a row of an entity has, followed through the field that reads one.
    pub(super) fn relations(&mut self) {
        let all: Vec<(String, String)> =
            self.ents.iter().filter_map(|(name, ent)| Some((name.clone(), ent.get.clone()?))).collect();
        let mut count = 0;
        for (name, get) in all {
            let Some(def) = self.schema.get(&name) else { continue };
            for field in def.fields.values().filter(|field| !field.deprecated) {
                let needs = field.args.iter().any(|arg| arg.ty.required && !arg.default);
                let Some(connection) = self.connection(&field.ty.name) else { continue };
                let (node, edges) = (connection.node.name.clone(), connection.edges);
                if count < MAX_RELATIONS && !needs && self.ents.contains_key(&node) {
                    count += 1;
                    self.relation(&name, &get, field, (&node, edges));
                }
            }
        }
    }

    fn relation(&mut self, of: &str, get: &str, field: &Field, (node, edges): (&str, bool)) {
        let (Some(parent), Some(target)) = (self.ents.get(of), self.ents.get(node)) else { return };
        let (parent, entity) = (parent.entity.clone(), target.entity.name.clone());
        let Some(key) = parent.key.first().cloned() else { return };
        let own = names::snake(&parent.name);
        // What leads to the same rows by another field needs another name.
        let mut scope = format!("{own}_{key}");
        if target.queries.contains(&vec![scope.clone()]) {
            scope = names::name(&format!("{own}_{}_{key}", names::snake(&field.name)));
        }
        let name = names::relation(&names::snake(&field.name));
        let taken = parent.fields.iter().any(|f| f.name == name) || parent.relations.iter().any(|r| r.name == name);
        if target.queries.contains(&vec![scope.clone()]) || taken {
            return;
        }
        let Some(root) = self.schema.get(&self.schema.query).and_then(|query| query.fields.get(get)) else { return };
        let arg = root.args.iter().find(|arg| arg.name == key || arg.ty.required).or(root.args.first());
        let Some(arg) = arg.cloned() else { return };
        let from = format!("query {get}");
        let mut made =
            self.new_capability(Kind::Query, &entity, &format!("list_of_{own}_{}", names::snake(&field.name)), from);
        made.about = names::sentence(&field.about, 72);
        made.params.push(Param {
            name: scope.clone(),
            ty: Ty::named("string"),
            required: true,
            role: None,
            list: None,
            as_text: false,
        });
        let at = format!("data.{get}.{}", field.name);
        let passed = self.listed(&mut made, field, Some(edges), &at);
        let mut declares = vec![format!("${scope}: {}", arg.ty.text)];
        declares.extend(passed.declares.iter().cloned());
        let rows = format!("{}{} {{ {} }}", field.name, passed.passed(), inner(&entity, Some(edges)));
        let rows = if get == "node" { format!("... on {of} {{ {rows} }}") } else { rows };
        let document = format!("query({}) {{ {get}({}: ${scope}) {{ {rows} }} }}", declares.join(", "), arg.name);
        made.call = Call::Graphql { document, variables: Vec::new() };
        let via = Via::By { capability: made.name.clone(), with: vec![(scope.clone(), key)] };
        let relation = Relation { name, many: true, target: entity, via };
        self.add(made);
        if let Some(target) = self.ents.get_mut(node) {
            target.queries.push(vec![scope]);
        }
        if let Some(parent) = self.ents.get_mut(of) {
            parent.entity.relations.push(relation);
        }
    }
}

/// What is selected of a list.
fn inner(entity: &str, edges: Option<bool>) -> String {
    let page = "pageInfo { hasNextPage endCursor }";
    match edges {
        None => format!("...{entity}"),
        Some(true) => format!("edges {{ node {{ ...{entity} }} }} {page}"),
        Some(false) => format!("nodes {{ ...{entity} }} {page}"),
    }
}

fn names_lower(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_ascii_lowercase()).into_iter().chain(chars).collect()
}
