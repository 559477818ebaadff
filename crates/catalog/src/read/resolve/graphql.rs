//! GraphQL mappings: a document, where its row's fields are selected, and its variables.
//! Invariant: the document parses; every variable that it declares has a value to come from, and nothing else is sent.

use std::collections::BTreeSet;

use apollo_parser::Parser;
use apollo_parser::cst::{self, CstNode};
use base::Diagnostic;
use indexmap::IndexMap;

use super::Cx;
use crate::codes;
use crate::model::{Document, DocumentPiece, Graphql, Kind, Param, Shape};
use crate::read::raw::{self, Text};
use crate::template::Hole;

impl Cx<'_> {
    pub(super) fn graphql(
        &mut self,
        (name, kind): (&str, Kind),
        raw: &raw::Capability,
        text: &Text,
        params: &IndexMap<String, Param>,
    ) -> Option<Graphql> {
        let place = self.place(text);
        let refuse = |message: String| Diagnostic::error(codes::MAPPING, place, format!("`{name}`: {message}"));
        let tree = Parser::new(&text.value).parse();
        if let Some(error) = tree.errors().next() {
            self.report(refuse(format!("not a GraphQL document: {}", error.message())));
            return None;
        }
        let document = tree.document();
        let operations: Vec<cst::OperationDefinition> = document
            .definitions()
            .filter_map(|d| if let cst::Definition::OperationDefinition(o) = d { Some(o) } else { None })
            .collect();
        let [operation] = operations.as_slice() else {
            self.report(refuse("write exactly one operation".to_owned()));
            return None;
        };
        let mutation = operation.operation_type().is_some_and(|t| t.mutation_token().is_some());
        if mutation == kind.is_read() {
            let fix = if kind.is_read() { "a read is a `query`" } else { "a write is a `mutation`" };
            self.report(refuse(fix.to_owned()));
            return None;
        }
        let declared: BTreeSet<String> = operation
            .variable_definitions()
            .into_iter()
            .flat_map(|d| d.variable_definitions())
            .filter_map(|d| Some(d.variable()?.name()?.text().to_string()))
            .collect();
        let mut variables = IndexMap::new();
        for (variable, value) in &raw.variables {
            variables.insert(variable.clone(), self.shape(name, value, place)?);
        }
        let paged: Vec<&String> = raw
            .paging
            .iter()
            .flat_map(|p| [p.page.as_ref(), p.offset.as_ref(), p.send.as_ref(), p.size.as_ref().map(|s| &s.send)])
            .flatten()
            .collect();
        for variable in &declared {
            let known = variables.contains_key(variable) || paged.contains(&variable);
            if !known && (params.contains_key(variable) || self.is_key(raw, variable)) {
                let hole = Hole { param: variable.clone(), part: None, segments: false };
                variables.insert(variable.clone(), Shape::Hole(hole));
            } else if !known && !(variable == "after" && raw.paging.as_ref().is_some_and(|p| p.connection.is_some())) {
                let known: Vec<String> = params.keys().cloned().collect();
                self.report(refuse(format!("nothing fills `${variable}`")).with_alternatives(known));
                return None;
            }
        }
        if let Some(stray) = variables.keys().find(|v| !declared.contains(*v)) {
            self.report(refuse(format!("the document does not declare `${stray}`")));
            return None;
        }
        let path = self.raw.graphql.clone().unwrap_or_else(|| "/graphql".to_owned());
        Some(Graphql { path, document: self.pieces(&document, &text.value), variables })
    }

    /// Whether the entity's key has this part and it is no parameter: then the instance fills it.
    fn is_key(&self, raw: &raw::Capability, variable: &str) -> bool {
        let entity = [&raw.get, &raw.update, &raw.delete, &raw.action].into_iter().flatten().next();
        let entity = entity.and_then(|name| self.raw.entities.get(&name.value));
        entity.is_some_and(|e| e.key.iter().any(|part| part.value == variable))
    }

    /// The text between the spreads that name an entity, and those.
    fn pieces(&self, document: &cst::Document, text: &str) -> Document {
        let mut pieces = Vec::new();
        let mut from = 0;
        for spread in document.syntax().descendants().filter_map(cst::FragmentSpread::cast) {
            let Some(entity) = spread.fragment_name().and_then(|f| f.name()).map(|n| n.text().to_string()) else {
                continue;
            };
            if !self.raw.entities.contains_key(&entity) {
                continue;
            }
            let range = spread.syntax().text_range();
            let (start, end) = (usize::from(range.start()), usize::from(range.end()));
            // The node's range may take in the white space after it.
            let end = start + text[start..end].trim_end().len();
            pieces.push(DocumentPiece::Literal(text[from..start].to_owned()));
            pieces.push(DocumentPiece::Selection(entity));
            from = end;
        }
        pieces.push(DocumentPiece::Literal(text[from..].to_owned()));
        Document { pieces }
    }
}
