//! A draft as YAML: stable order, short lines where a line is enough, comments where a person should look.
//! Invariant: the same draft gives the same text; every line belongs to a part that can be found again by its number.

use std::fmt::Write;

use super::quote::{flow, sentence, text};
use super::{
    Auth, Body, Call, Capability, Draft, Entity, Field, Kind, Once, PageForm, Paging, Param, Place, Slot, Ty, Via,
};

/// A line that is longer is written as several.
const WIDTH: usize = 118;

/// The text, and which lines are whose.
#[derive(Debug, Default)]
pub struct Written {
    pub text: String,
    /// First line of each entity, in order.
    pub entities: Vec<usize>,
    /// First line of each capability, in order.
    pub capabilities: Vec<usize>,
    /// The first line after the last capability.
    pub end: usize,
}

pub fn write(draft: &Draft) -> Written {
    let mut out = Written::default();
    let mut text_of = Out { text: String::new(), line: 1 };
    head(&mut text_of, draft);
    text_of.line_of(if draft.entities.is_empty() { "entities: {}" } else { "entities:" });
    for entity in &draft.entities {
        out.entities.push(text_of.line);
        write_entity(&mut text_of, entity);
    }
    text_of.line_of("");
    text_of.line_of(if draft.capabilities.is_empty() { "capabilities: {}" } else { "capabilities:" });
    for capability in &draft.capabilities {
        out.capabilities.push(text_of.line);
        write_capability(&mut text_of, capability);
    }
    out.end = text_of.line;
    out.text = text_of.text;
    out
}

struct Out {
    text: String,
    /// The number of the line that is written next.
    line: usize,
}

impl Out {
    fn line_of(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.line += 1 + line.matches('\n').count();
    }

    fn comment(&mut self, indent: &str, note: &str) {
        for part in note.lines() {
            let clean: String = part.chars().filter(|c| !c.is_control()).take(300).collect();
            self.line_of(&format!("{indent}# {clean}"));
        }
    }

    /// `key: {…}` on one line, or its pairs on one each.
    fn map(&mut self, indent: &str, key: &str, pairs: &[(String, String)]) {
        if pairs.is_empty() {
            return;
        }
        let joined: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let line = format!("{indent}{key}: {{{}}}", joined.join(", "));
        if line.chars().count() <= WIDTH {
            return self.line_of(&line);
        }
        self.line_of(&format!("{indent}{key}:"));
        for pair in joined {
            self.line_of(&format!("{indent}  {pair}"));
        }
    }
}

fn head(out: &mut Out, draft: &Draft) {
    for note in &draft.notes {
        out.comment("", note);
    }
    out.line_of(&format!("catalog: {}", text(&draft.id)));
    out.line_of("version: 1");
    out.line_of(&format!("title: {}", sentence(&draft.title)));
    let address = |c: char| c.is_ascii_alphanumeric() || ":/._~-".contains(c);
    let plain = draft.origin.chars().all(address) && !draft.origin.ends_with(':');
    out.line_of(&format!("origin: {}", if plain { draft.origin.clone() } else { text(&draft.origin) }));
    if let Some(auth) = &draft.auth {
        out.line_of(&format!("auth: {}", auth_of(auth)));
    }
    if draft.anonymous {
        out.line_of("anonymous: true");
    }
    let headers: Vec<(String, String)> = draft.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
    out.map("", "headers", &headers);
    if let Some((flag, says)) = &draft.failure {
        out.line_of(&format!("failure: {{flag: {}, says: {}}}", text(flag), text(says)));
    }
    if let Some(path) = &draft.graphql {
        out.line_of(&format!("graphql: {}", text(path)));
    }
    if !draft.types.is_empty() {
        out.line_of("types:");
        for (name, ty) in &draft.types {
            out.line_of(&format!("  {}: {{{}}}", text(name), inner(ty)));
        }
    }
}

fn auth_of(auth: &Auth) -> String {
    match auth {
        Auth::Bearer(secret) => format!("{{bearer: {}}}", text(secret)),
        Auth::Header { name, secret, prefix } => {
            let prefix = prefix.as_ref().map(|p| format!(", prefix: {}", text(p))).unwrap_or_default();
            format!("{{header: {{name: {}, secret: {}{prefix}}}}}", text(name), text(secret))
        }
        Auth::Query { name, secret } => format!("{{query: {{name: {}, secret: {}}}}}", text(name), text(secret)),
        Auth::Basic { user, password } => {
            format!("{{basic: {{user: {}, password: {}}}}}", text(user), text(password))
        }
        Auth::Oauth2 { origin, path, id, secret, scopes } => {
            let scopes = names(scopes);
            format!(
                "{{oauth2: {{token_origin: {}, token_path: {}, client_id: {}, client_secret: {}, scopes: {scopes}}}}}",
                text(origin),
                text(path),
                text(id),
                text(secret)
            )
        }
    }
}

fn names(list: &[String]) -> String {
    format!("[{}]", list.iter().map(|name| text(name)).collect::<Vec<_>>().join(", "))
}

/// What says the type, inside braces.
fn inner(ty: &Ty) -> String {
    match ty {
        Ty::Named(name) => format!("type: {}", text(name)),
        Ty::Ref(entity) => format!("ref: {}", text(entity)),
        Ty::Array(of) => format!("array: {}", alone(of)),
        Ty::Select(choices) => format!("select: {}", names(choices)),
        Ty::MultiSelect(choices) => format!("multi_select: {}", names(choices)),
        Ty::Object(slots) => format!("object: {}", slots_of(slots)),
        Ty::Union { tag, arms } => {
            let arms: Vec<String> =
                arms.iter().map(|(name, slots)| format!("{}: {}", text(name), slots_of(slots))).collect();
            format!("union: {{tag: {}, arms: {{{}}}}}", text(tag), arms.join(", "))
        }
    }
}

fn alone(ty: &Ty) -> String {
    match ty {
        Ty::Named(name) => text(name),
        other => format!("{{{}}}", inner(other)),
    }
}

fn slots_of(slots: &[Slot]) -> String {
    let one = |slot: &Slot| match (&slot.ty, slot.required) {
        (ty, false) => format!("{}: {}", text(&slot.name), alone(ty)),
        (ty, true) => format!("{}: {{{}, required: true}}", text(&slot.name), inner(ty)),
    };
    format!("{{{}}}", slots.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn field_of(field: &Field) -> String {
    let place = match &field.place {
        Place::Own => None,
        Place::At(path) => Some(format!("path: {}", text(path))),
        Place::Parts(parts) => {
            let parts: Vec<String> =
                parts.iter().map(|(part, path)| format!("{}: {}", text(part), text(path))).collect();
            Some(format!("path: {{{}}}", parts.join(", ")))
        }
        Place::Asked => Some("path: []".to_owned()),
        Place::Header(name) => Some(format!("header: {name}")),
    };
    let wire = field.as_text.then(|| "wire: text".to_owned());
    let show = field.long.then(|| "show: artifact".to_owned());
    let more: Vec<String> = [place, wire, show].into_iter().flatten().collect();
    if more.is_empty() { alone(&field.ty) } else { format!("{{{}, {}}}", inner(&field.ty), more.join(", ")) }
}

fn write_entity(out: &mut Out, entity: &Entity) {
    if let Some(note) = &entity.note {
        out.comment("  ", note);
    }
    out.line_of(&format!("  {}:", text(&entity.name)));
    out.line_of(&format!("    about: {}", sentence(&entity.about)));
    if !entity.words.is_empty() {
        out.line_of(&format!("    words: {}", names(&entity.words)));
    }
    out.line_of(&format!("    key: {}", names(&entity.key)));
    if let Some(get) = &entity.primary_read {
        out.line_of(&format!("    primary_read: {}", text(get)));
    }
    out.line_of("    fields:");
    for field in &entity.fields {
        out.line_of(&format!("      {}: {}", text(&field.name), field_of(field)));
    }
    if entity.relations.is_empty() {
        return;
    }
    out.line_of("    relations:");
    for relation in &entity.relations {
        let count = if relation.many { "many" } else { "one" };
        let via = match &relation.via {
            Via::By { capability, with } if with.is_empty() => format!("by: {}", text(capability)),
            Via::By { capability, with } => {
                let with: Vec<String> =
                    with.iter().map(|(param, field)| format!("{}: {}", text(param), text(field))).collect();
                format!("by: {}, with: {{{}}}", text(capability), with.join(", "))
            }
        };
        out.line_of(&format!("      {}: {{{count}: {}, {via}}}", text(&relation.name), text(&relation.target)));
    }
}

fn param_of(param: &Param) -> String {
    let required = param.required.then(|| "required: true".to_owned());
    let role = param.role.map(|role| format!("role: {role}"));
    let list = param.list.map(|list| format!("list: {list}"));
    let wire = param.as_text.then(|| "wire: text".to_owned());
    let more: Vec<String> = [required, role, list, wire].into_iter().flatten().collect();
    if more.is_empty() { alone(&param.ty) } else { format!("{{{}, {}}}", inner(&param.ty), more.join(", ")) }
}

fn write_capability(out: &mut Out, capability: &Capability) {
    if let Some(note) = &capability.note {
        out.comment("  ", note);
    }
    let indent = "    ";
    out.line_of(&format!("  {}:", text(&capability.name)));
    out.line_of(&format!("{indent}{}: {}", capability.kind.word(), text(&capability.entity)));
    if !capability.about.is_empty() {
        out.line_of(&format!("{indent}about: {}", sentence(&capability.about)));
    }
    if !capability.words.is_empty() {
        out.line_of(&format!("{indent}words: {}", names(&capability.words)));
    }
    if let Some(param) = &capability.text {
        out.line_of(&format!("{indent}text: {}", text(param)));
    }
    let params: Vec<(String, String)> = capability.params.iter().map(|p| (text(&p.name), param_of(p))).collect();
    out.map(indent, "params", &params);
    match &capability.call {
        Call::Http(line) => out.line_of(&format!("{indent}http: {}", line_of(line))),
        Call::Graphql { document, variables } => {
            out.line_of(&format!("{indent}graphql: {}", text(document)));
            let variables: Vec<(String, String)> = variables.iter().map(|(name, v)| (text(name), flow(v))).collect();
            out.map(indent, "variables", &variables);
        }
    }
    let headers: Vec<(String, String)> = capability.headers.iter().map(|(n, v)| (text(n), text(v))).collect();
    out.map(indent, "headers", &headers);
    if let Some(body) = &capability.body {
        write_body(out, indent, body);
    }
    write_answer(out, indent, capability);
}

/// `GET /path/{hole}` needs no quotes in a block, where nothing in it means something to YAML.
fn line_of(line: &str) -> String {
    let odd = |c: char| c.is_control() || !c.is_ascii() || "#:\"'`%@&*!|>\\".contains(c) && c != '&';
    let plain = !line.contains(odd) && !line.contains(" #") && !line.contains(": ");
    if plain { line.to_owned() } else { super::quote::text(line) }
}

fn write_body(out: &mut Out, indent: &str, body: &Body) {
    match body {
        Body::Json { shape, media } => {
            shape_of(out, indent, "body", shape);
            if let Some(media) = media {
                out.line_of(&format!("{indent}content_type: {}", text(media)));
            }
        }
        Body::Form(shape) => shape_of(out, indent, "form", shape),
        Body::Multipart(parts) => {
            let parts: Vec<(String, String)> = parts.iter().map(|(name, part)| (text(name), flow(part))).collect();
            out.map(indent, "multipart", &parts);
        }
        Body::Raw { hole, media } => {
            out.line_of(&format!("{indent}raw: {}", text(&format!("{{{hole}}}"))));
            out.line_of(&format!("{indent}content_type: {}", text(media)));
        }
    }
}

fn shape_of(out: &mut Out, indent: &str, key: &str, shape: &serde_json::Value) {
    match shape {
        serde_json::Value::Object(map) if !map.is_empty() => {
            let pairs: Vec<(String, String)> = map.iter().map(|(name, value)| (text(name), flow(value))).collect();
            out.map(indent, key, &pairs);
        }
        other => out.line_of(&format!("{indent}{key}: {}", flow(other))),
    }
}

fn write_answer(out: &mut Out, indent: &str, capability: &Capability) {
    let mut say = |key: &str, value: &Option<String>| {
        if let Some(value) = value {
            out.line_of(&format!("{indent}{key}: {}", text(value)));
        }
    };
    let list = matches!(capability.kind, Kind::Query | Kind::Search);
    say(if list { "rows" } else { "row" }, &capability.rows);
    say("item", &capability.item);
    say("wrap", &capability.wrap);
    say("entries", &capability.entries);
    say("returns", &capability.returns);
    if capability.sparse {
        out.line_of(&format!("{indent}sparse: true"));
    }
    if capability.silent {
        out.line_of(&format!("{indent}answer: none"));
    }
    if let Some(gives) = &capability.gives {
        out.line_of(&format!("{indent}gives: {}", names(gives)));
    }
    if let Some(paging) = &capability.paging {
        out.line_of(&format!("{indent}paging: {}", paging_of(paging)));
    }
    match &capability.once {
        Some(Once::Header(name)) => out.line_of(&format!("{indent}idempotency: {{header: {}}}", text(name))),
        Some(Once::Natural) => out.line_of(&format!("{indent}idempotency: natural")),
        None => {}
    }
}

fn paging_of(paging: &Paging) -> String {
    let mut line = match &paging.form {
        PageForm::Page { send, from } => format!("page: {}, from: {from}", text(send)),
        PageForm::Offset(send) => format!("offset: {}", text(send)),
        PageForm::Cursor { read, send } => format!("cursor: {}, send: {}", text(read), text(send)),
        PageForm::Link => "link: next".to_owned(),
        PageForm::Next(read) => format!("next: {}", text(read)),
        PageForm::Last { field, send } => format!("last: {}, send: {}", text(field), text(send)),
        PageForm::Connection { at, send } if send == "after" => format!("connection: {}", text(at)),
        PageForm::Connection { at, send } => format!("connection: {}, send: {}", text(at), text(send)),
    };
    // Writing into a string cannot fail.
    if let Some((send, max)) = &paging.size {
        let _ = write!(line, ", size: {{send: {}, max: {max}}}", text(send));
    }
    if let Some(total) = &paging.total {
        let _ = write!(line, ", total: {}", text(total));
    }
    if let Some(more) = &paging.more {
        let _ = write!(line, ", more: {}", text(more));
    }
    if paging.in_body {
        line.push_str(", in: body");
    }
    format!("{{{line}}}")
}
