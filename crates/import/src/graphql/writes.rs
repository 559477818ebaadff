//! Mutations: creates, updates, deletes and actions, with the fields of their input as parameters.
//! Invariant: what identifies a row is filled from the row; everything else that must be given is a parameter.

use catalog::Kind;
use serde_json::{Map, Value, json};

use super::reads::Passed;
use super::schema::{Arg, Field, Form};
use super::{Mapper, types};
use crate::draft::{Call, Param};
use crate::names;

const MAX_OPTIONAL: usize = 24;

/// One input of a mutation, however deep it lies.
struct Input {
    name: String,
    arg: Arg,
}

impl Mapper<'_> {
    pub(super) fn writes(&mut self, mutations: &[Field]) {
        for field in mutations {
            self.write(field);
        }
    }

    fn write(&mut self, field: &Field) {
        let label = format!("mutation {}", field.name);
        let single = match field.args.as_slice() {
            [only] if !only.ty.list => self.schema.get(&only.ty.name).filter(|def| def.form == Form::Input),
            _ => None,
        };
        let inputs: Vec<Input> = match single {
            Some(def) => def.fields.values().filter(|f| f.name != "clientMutationId").map(input_of).collect(),
            None => field.args.iter().map(|arg| Input { name: arg.name.clone(), arg: arg.clone() }).collect(),
        };
        let words = names::words(&field.name);
        let given = self.given(&field.ty.name);
        let anchor = self.anchor(&inputs, &words, given.as_ref().map(|(ent, _)| ent.as_str()));
        let owner = anchor.as_ref().map(|(ent, _)| ent.clone()).or_else(|| given.as_ref().map(|(ent, _)| ent.clone()));
        let owner = owner.or_else(|| self.by_words(&words)).or_else(|| self.ents.keys().next().cloned());
        let Some(owner) = owner else { return self.refuse(label, "there is nothing that it could belong to") };
        let kind = kind_of(&words, anchor.is_some(), given.is_some());
        let Some(ent) = self.ents.get(&owner) else { return };
        let (entity, key) = (ent.entity.name.clone(), ent.entity.key.first().cloned().unwrap_or_default());
        let own = names::words(&entity);
        let verb: Vec<String> =
            words.iter().filter(|word| !own.contains(word) && !own.contains(&names::singular(word))).cloned().collect();
        let verb = if verb.is_empty() { words.join("_") } else { verb.join("_") };
        let verb = self.free_verb(&owner, &verb);
        let mut made = self.new_capability(kind, &entity, &verb, label);
        made.about = names::sentence(&field.about, 72);
        made.instance = anchor.is_some();
        let at = anchor.map(|(_, input)| input);
        let (shape, passed) = self.inputs(&mut made.params, &inputs, (at.as_deref(), &key));
        let (call_args, declared, variables) = match (single, field.args.first()) {
            (Some(_), Some(arg)) => {
                let passes = format!("({}: $input)", arg.name);
                (passes, format!("($input: {})", arg.ty.text), vec![("input".to_owned(), Value::Object(shape))])
            }
            _ => (passed.passed(), passed.declared(), Vec::new()),
        };
        let (selection, rows, returns) = self.answer(field, given.as_ref());
        let name = &field.name;
        made.call =
            Call::Graphql { document: format!("mutation{declared} {{ {name}{call_args}{selection} }}"), variables };
        made.silent = rows.is_none() && matches!(kind, Kind::Create | Kind::Update);
        made.returns = returns.filter(|returned| *returned != entity || matches!(kind, Kind::Action | Kind::Delete));
        made.rows = rows;
        self.add(made);
    }

    /// The entity that an answer holds, and by which of its fields; none of them where it is the answer itself.
    fn given(&self, name: &str) -> Option<(String, Option<String>)> {
        if self.ents.contains_key(name) {
            return Some((name.to_owned(), None));
        }
        let def = self.schema.get(name).filter(|def| def.form == Form::Object)?;
        let field = def
            .fields
            .values()
            .find(|f| !f.ty.list && !f.deprecated && f.args.is_empty() && self.ents.contains_key(&f.ty.name))?;
        Some((field.ty.name.clone(), Some(field.name.clone())))
    }

    /// The entity whose id is among the inputs, and which of them it is.
    fn anchor(&self, inputs: &[Input], words: &[String], given: Option<&str>) -> Option<(String, String)> {
        if words.first().is_some_and(|word| word == "create") {
            return None;
        }
        let id = |input: &&Input| input.arg.ty.name == "ID" && !input.arg.ty.list && input.arg.ty.required;
        for input in inputs.iter().filter(id) {
            if input.name == "id" {
                let of = self.by_words(words).or_else(|| given.map(str::to_owned))?;
                return self.keyed_by_id(&of).then_some((of, input.name.clone()));
            }
            let stem = input.name.strip_suffix("Id").unwrap_or_default();
            let of = self.ents.keys().find(|name| names::snake(name) == names::snake(stem)).cloned();
            if let Some(of) = of.filter(|of| self.keyed_by_id(of)) {
                return Some((of, input.name.clone()));
            }
        }
        None
    }

    fn keyed_by_id(&self, of: &str) -> bool {
        self.ents.get(of).is_some_and(|ent| ent.entity.key == ["id"])
    }

    /// The entity with the longest name whose words all stand in these.
    fn by_words(&self, words: &[String]) -> Option<String> {
        let said = |name: &&String| {
            names::words(name).iter().all(|word| words.iter().any(|own| own == word || names::singular(own) == *word))
        };
        self.ents.keys().filter(said).max_by_key(|name| name.len()).cloned()
    }

    fn inputs(
        &self,
        params: &mut Vec<Param>,
        inputs: &[Input],
        (at, key): (Option<&str>, &str),
    ) -> (Map<String, Value>, Passed) {
        let mut shape = Map::new();
        let mut passed = Passed::default();
        let mut optional = 0;
        for Input { name, arg } in inputs {
            if at == Some(name.as_str()) {
                shape.insert(name.clone(), json!(format!("{{{key}}}")));
                passed.add(name, key, &arg.ty.text);
                continue;
            }
            let param = self.param(arg, names::name(name));
            let param =
                if at.is_some() && param.name == key { Param { name: format!("new_{key}"), ..param } } else { param };
            optional += usize::from(!param.required);
            if (!param.required && optional > MAX_OPTIONAL) || params.iter().any(|known| known.name == param.name) {
                continue;
            }
            shape.insert(name.clone(), json!(format!("{{{}}}", param.name)));
            passed.add(name, &param.name, &arg.ty.text);
            params.push(param);
        }
        (shape, passed)
    }

    /// What is selected of the answer, where its row is, and of which entity.
    fn answer(
        &self,
        field: &Field,
        given: Option<&(String, Option<String>)>,
    ) -> (String, Option<String>, Option<String>) {
        let name = |of: &str| self.ents.get(of).map(|ent| ent.entity.name.clone()).unwrap_or_default();
        match given {
            Some((of, None)) => {
                let rows = (!field.ty.list).then(|| format!("data.{}", field.name));
                let returns = rows.is_some().then(|| name(of));
                (format!(" {{ ...{} }}", name(of)), rows, returns)
            }
            Some((of, Some(inner))) => {
                let rows = (!field.ty.list).then(|| format!("data.{}.{inner}", field.name));
                let returns = rows.is_some().then(|| name(of));
                (format!(" {{ {inner} {{ ...{} }} }}", name(of)), rows, returns)
            }
            None if types::leaf(self.schema, &field.ty.name).is_some() => (String::new(), None, None),
            None => (" { __typename }".to_owned(), None, None),
        }
    }
}

fn input_of(field: &Field) -> Input {
    let arg = Arg { name: field.name.clone(), ty: field.ty.clone(), default: false, about: field.about.clone() };
    Input { name: field.name.clone(), arg }
}

fn kind_of(words: &[String], anchored: bool, gives: bool) -> Kind {
    match words.first().map(String::as_str) {
        Some("create" | "add") if !anchored && gives => Kind::Create,
        Some("update") if anchored && gives => Kind::Update,
        Some("delete" | "remove") if anchored && words.len() <= 3 => Kind::Delete,
        _ => Kind::Action,
    }
}
