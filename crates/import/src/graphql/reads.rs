//! The mapping of GraphQL queries: connections and lists become queries, fields with a key argument become gets, connections of
//! entities become relations.
//! Invariant: every required argument is a parameter. Two lists of one entity differ in their required parameters.

use catalog::Kind;
use catalog::raw::{Paging, Relation, Size};
use indexmap::IndexMap;

use super::schema::{Arg, Field, TypeKind};
use super::{SchemaEntity, SchemaMapper};
use crate::draft::{self, DraftCapability, named_type};
use crate::names;

/// The maximum number of connections that become relations. Large schemas have thousands of connections.
const MAX_RELATIONS: usize = 600;

/// The page size that is requested. A GraphQL schema declares no maximum; nearly all APIs allow 50 rows.
const ROWS_PER_PAGE: usize = 50;

/// The place of the rows in the value of a list field.
#[derive(Debug, Clone, Copy)]
enum ListForm {
    /// The value is an array of rows: `[Ticket]`.
    Plain,
    /// The value is a connection with the rows in `nodes`.
    Nodes,
    /// The value is a connection with the rows in `edges { node }`.
    Edges,
}

/// The variables of a GraphQL document: their declarations, and the arguments that pass them to a field.
#[derive(Debug, Default)]
pub(super) struct Variables {
    declarations: Vec<String>,
    arguments: Vec<String>,
}

impl Variables {
    pub fn add(&mut self, arg: &Arg, variable: &str) {
        self.declare(variable, arg);
        self.arguments.push(format!("{}: ${variable}", arg.name));
    }

    fn declare(&mut self, variable: &str, arg: &Arg) {
        self.declarations.push(format!("${variable}: {}", arg.ty.text));
    }

    /// Returns the text after the word `query` or `mutation`: `($id: ID!)`. It is empty without variables.
    pub fn declarations(&self) -> String {
        in_parentheses(&self.declarations)
    }

    /// Returns the text after the name of a field: `(id: $id)`. It is empty without arguments.
    pub fn arguments(&self) -> String {
        in_parentheses(&self.arguments)
    }
}

fn in_parentheses(items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!("({})", items.join(", ")) }
}

impl SchemaMapper<'_> {
    pub(super) fn map_reads(&mut self, queries: &[Field]) {
        // `node` is mapped last. It becomes the get only of entities that have no other get.
        let (node, others): (Vec<&Field>, Vec<&Field>) = queries.iter().partition(|field| field.name == "node");
        for field in others.into_iter().chain(node) {
            self.map_read(field);
        }
    }

    fn map_read(&mut self, field: &Field) {
        let label = format!("query {}", field.name);
        let type_name = &field.ty.name;
        if let Some(connection) = self.connection(type_name) {
            let node = connection.node.name.clone();
            let form = if connection.has_edges { ListForm::Edges } else { ListForm::Nodes };
            return match self.entities.contains_key(&node) {
                true => self.add_list(field, &node, form),
                false => self.report_unmapped(label, format!("nothing identifies the rows of {node}")),
            };
        }
        let form = self.schema.get(type_name).map(|def| def.kind.clone());
        match form {
            Some(TypeKind::Object) if !self.entities.contains_key(type_name) => {
                self.report_unmapped(label, format!("nothing identifies a row of {type_name}"));
            }
            Some(TypeKind::Object) if field.ty.is_list => self.add_list(field, type_name, ListForm::Plain),
            Some(TypeKind::Object) => self.add_single(field),
            Some(TypeKind::Interface | TypeKind::Union) if field.name == "node" && self.has_node_query() => {
                self.add_node_gets(label);
            }
            Some(TypeKind::Interface | TypeKind::Union) => {
                self.report_unmapped(label, format!("it answers with any of several types ({type_name})"));
            }
            _ => self.report_unmapped(label, "it answers with a bare value, not with an object or a list"),
        }
    }

    /// Adds a get by the query `node` for each entity with the key `id` and no other get.
    fn add_node_gets(&mut self, label: String) {
        let has_no_get = |entity: &SchemaEntity| entity.get.is_none() && entity.draft.raw.key == ["id"];
        let is_node = |type_name: &str| self.schema.get(type_name).is_some_and(|def| def.is_node());
        let of_node: Vec<String> = self
            .entities
            .iter()
            .filter(|(type_name, entity)| is_node(type_name) && has_no_get(entity))
            .map(|(type_name, _)| type_name.clone())
            .collect();
        if of_node.is_empty() {
            return self.report_unmapped(label, "everything that has an id is read by a field of its own");
        }
        for type_name in of_node {
            let Some(entity) = self.entities.get_mut(&type_name) else { continue };
            entity.get = Some("node".to_owned());
            let entity = entity.draft.name.clone();
            let document = format!("query($id: ID!) {{ node(id: $id) {{ ... on {type_name} {{ ...{entity} }} }} }}");
            let mut capability = self.new_capability(Kind::Get, &entity, "get", label.clone());
            capability.raw.graphql = Some(document);
            capability.set_rows(Some("data.node".to_owned()));
            self.capabilities.push(capability);
        }
    }

    /// Adds a get if the arguments are the entity's key, else a singleton that reads one row.
    fn add_single(&mut self, field: &Field) {
        let type_name = &field.ty.name;
        let Some(entity) = self.entities.get(type_name) else { return };
        let entity_name = entity.draft.name.clone();
        let key = entity.key().to_owned();
        let required: Vec<&Arg> = field.args.iter().filter(|arg| arg.is_required()).collect();
        let takes_key = match required.as_slice() {
            [only] => {
                only.name == key || only.name == format!("{}Id", with_small_initial(type_name)) || only.name == "id"
            }
            // Many schemas declare the key argument as optional although the API rejects calls without it.
            [] => field.args.iter().any(|arg| arg.name == key) && field.args.len() <= 3,
            _ => false,
        };
        let is_get = takes_key && entity.get.is_none() && entity.draft.raw.key.len() == 1;
        let key_arg = required.first().map_or(key.as_str(), |arg| arg.name.as_str());
        let (kind, verb) = match is_get {
            true => (Kind::Get, "get".to_owned()),
            false => (Kind::Singleton, self.free_verb(type_name, &field.name)),
        };
        let mut capability = self.new_capability(kind, &entity_name, &verb, format!("query {}", field.name));
        let mut variables = Variables::default();
        for arg in &field.args {
            if is_get && arg.name == key_arg {
                variables.add(arg, &key);
            } else if !is_get || arg.ty.required {
                let name = names::field_name(&arg.name);
                variables.add(arg, &name);
                capability.raw.params.insert(name, self.param(arg));
            }
        }
        let call = format!("{}{} {{ ...{entity_name} }}", field.name, variables.arguments());
        capability.raw.graphql = Some(format!("query{} {{ {call} }}", variables.declarations()));
        capability.set_rows(Some(format!("data.{}", field.name)));
        if is_get {
            if let Some(entity) = self.entities.get_mut(type_name) {
                entity.get = Some(field.name.clone());
            }
        } else {
            capability.raw.about = names::first_sentence(&field.description, 72);
        }
        self.capabilities.push(capability);
    }

    fn add_list(&mut self, field: &Field, type_name: &str, form: ListForm) {
        let Some(entity) = self.entities.get_mut(type_name) else { return };
        let entity_name = entity.draft.name.clone();
        let search_arg = field.args.iter().find(|arg| {
            matches!(arg.name.as_str(), "query" | "q" | "search" | "term" | "text")
                && arg.ty.name == "String"
                && arg.ty.required
                && !arg.ty.is_list
        });
        let label = format!("query {}", field.name);
        let mut needs: Vec<String> =
            field.args.iter().filter(|arg| arg.is_required()).map(|arg| arg.name.clone()).collect();
        needs.retain(|name| search_arg.is_none_or(|arg| arg.name != *name));
        needs.sort();
        let (kind, verb, known_needs) = match search_arg {
            Some(_) => (Kind::Search, "search", &mut entity.search_required_inputs),
            None => (Kind::Query, "list", &mut entity.query_required_inputs),
        };
        if known_needs.contains(&needs) {
            let why = format!("{entity_name} has a list that needs the same; make it one with optional filters");
            return self.report_unmapped(label, why);
        }
        known_needs.push(needs);
        let mut capability = self.new_capability(kind, &entity_name, verb, label);
        capability.raw.about = names::first_sentence(&field.description, 72);
        capability.raw.text = search_arg.map(|arg| names::field_name(&arg.name));
        let mut variables = Variables::default();
        self.add_list_call(&mut capability, &mut variables, field, form, &format!("data.{}", field.name));
        let call = format!("{}{} {{ {} }}", field.name, variables.arguments(), selection(&entity_name, form));
        capability.raw.graphql = Some(format!("query{} {{ {call} }}", variables.declarations()));
        self.capabilities.push(capability);
    }

    /// Adds the parameters, the row path and the paging of a list field. `path` is the field's path in the answer.
    fn add_list_call(
        &self,
        capability: &mut DraftCapability,
        variables: &mut Variables,
        field: &Field,
        form: ListForm,
        path: &str,
    ) {
        let is_connection = !matches!(form, ListForm::Plain);
        let has_arg = |name: &str| field.args.iter().any(|arg| arg.name == name);
        let has_pages = is_connection && has_arg("after") && has_arg("first");
        for arg in &field.args {
            let is_forward = matches!(arg.name.as_str(), "first" | "after");
            let is_paging = is_connection && (is_forward || matches!(arg.name.as_str(), "last" | "before"));
            if has_pages && is_forward {
                variables.add(arg, &arg.name);
            } else if capability.raw.text.as_deref() == Some(arg.name.as_str()) {
                variables.add(arg, &names::field_name(&arg.name));
            } else if !is_paging || arg.is_required() {
                let mut name = names::field_name(&arg.name);
                if capability.raw.params.contains_key(&name) {
                    name = format!("{name}_2");
                }
                variables.add(arg, &name);
                capability.raw.params.insert(name, self.param(arg));
            }
        }
        match form {
            ListForm::Plain => capability.set_rows(Some(path.to_owned())),
            ListForm::Edges => {
                capability.set_rows(Some(format!("{path}.edges")));
                capability.raw.item = Some("node".to_owned());
            }
            // With paging, `Paging::connection` already contains the path of the rows.
            ListForm::Nodes if !has_pages => capability.set_rows(Some(format!("{path}.nodes"))),
            ListForm::Nodes => {}
        }
        if has_pages {
            capability.raw.paging = Some(Paging {
                connection: Some(path.to_owned()),
                size: Some(Size { send: "first".to_owned(), max: ROWS_PER_PAGE }),
                ..Paging::default()
            });
        }
    }

    /// Adds the connections of entities as relations. A relation needs a get that reads the parent.
    pub(super) fn add_relations(&mut self) {
        let readable: Vec<(String, String)> = self
            .entities
            .iter()
            .filter_map(|(type_name, entity)| Some((type_name.clone(), entity.get.clone()?)))
            .collect();
        let mut count = 0;
        for (type_name, get) in readable {
            let Some(def) = self.schema.get(&type_name) else { continue };
            for field in def.fields.values().filter(|field| !field.deprecated) {
                let Some(connection) = self.connection(&field.ty.name) else { continue };
                let node = connection.node.name.clone();
                let form = if connection.has_edges { ListForm::Edges } else { ListForm::Nodes };
                let needs_arguments = field.args.iter().any(Arg::is_required);
                if count < MAX_RELATIONS && !needs_arguments && self.entities.contains_key(&node) {
                    count += 1;
                    self.add_relation(&type_name, &get, field, &node, form);
                }
            }
        }
    }

    /// Adds a relation with its query. The query reads the parent by the query field `get` and selects the connection in it.
    fn add_relation(&mut self, parent_type: &str, get: &str, field: &Field, node: &str, form: ListForm) {
        let (Some(parent), Some(target)) = (self.entities.get(parent_type), self.entities.get(node)) else { return };
        let parent_name = names::snake_case(&parent.draft.name);
        let target_name = target.draft.name.clone();
        let key = parent.key().to_owned();
        let field_name = names::snake_case(&field.name);
        // A second connection from this parent to the same entity needs another parameter name, because two lists must differ
        // in their required parameters.
        let mut scope = format!("{parent_name}_{key}");
        if target.query_required_inputs.contains(&vec![scope.clone()]) {
            scope = names::field_name(&format!("{parent_name}_{field_name}_{key}"));
        }
        let name = names::relation_name(&field_name);
        let raw = &parent.draft.raw;
        let is_taken = raw.fields.contains_key(&name) || raw.relations.contains_key(&name);
        if is_taken || target.query_required_inputs.contains(&vec![scope.clone()]) {
            return;
        }
        let Some(get_field) = self.schema.get(&self.schema.query).and_then(|query| query.fields.get(get)) else {
            return;
        };
        let key_arg = get_field.args.iter().find(|arg| arg.name == key || arg.ty.required);
        let Some(key_arg) = key_arg.or(get_field.args.first()) else { return };
        let verb = format!("list_of_{parent_name}_{field_name}");
        let mut capability = self.new_capability(Kind::Query, &target_name, &verb, format!("query {get}"));
        capability.raw.about = names::first_sentence(&field.description, 72);
        capability.raw.params.insert(scope.clone(), draft::param_declaration(named_type("string"), true));
        let mut variables = Variables::default();
        variables.declare(&scope, key_arg);
        let path = format!("data.{get}.{}", field.name);
        self.add_list_call(&mut capability, &mut variables, field, form, &path);
        let list = format!("{}{} {{ {} }}", field.name, variables.arguments(), selection(&target_name, form));
        let list = if get == "node" { format!("... on {parent_type} {{ {list} }}") } else { list };
        let call = format!("{get}({}: ${scope}) {{ {list} }}", key_arg.name);
        capability.raw.graphql = Some(format!("query{} {{ {call} }}", variables.declarations()));
        let relation = Relation {
            many: Some(target_name),
            by: Some(capability.name.clone()),
            with: IndexMap::from([(scope.clone(), key)]),
            ..Relation::default()
        };
        self.capabilities.push(capability);
        if let Some(target) = self.entities.get_mut(node) {
            target.query_required_inputs.push(vec![scope]);
        }
        if let Some(parent) = self.entities.get_mut(parent_type) {
            parent.draft.raw.relations.insert(name, relation);
        }
    }
}

/// Returns the selection of a list. When a program runs, `...Ticket` is replaced by the fields that the program needs.
fn selection(entity: &str, form: ListForm) -> String {
    let page = "pageInfo { hasNextPage endCursor }";
    match form {
        ListForm::Plain => format!("...{entity}"),
        ListForm::Edges => format!("edges {{ node {{ ...{entity} }} }} {page}"),
        ListForm::Nodes => format!("nodes {{ ...{entity} }} {page}"),
    }
}

fn with_small_initial(name: &str) -> String {
    let mut chars = name.chars();
    let initial = chars.next().map(|c| c.to_ascii_lowercase());
    initial.into_iter().chain(chars).collect()
}
