//! Resolves GraphQL mappings: the document, the places where binding inserts the selection of an entity's fields, and
//! the variables.
//! Invariant: the document is valid GraphQL. Every declared variable has a source, and only declared variables are
//! sent.

use std::collections::BTreeSet;

use apollo_parser::Parser;
use apollo_parser::cst::{self, CstNode};
use base::similar_names;
use indexmap::IndexMap;

use super::capability::WrittenCapability;
use super::{CatalogResolver, Mistake};
use crate::codes;
use crate::model::{Document, DocumentPiece, Graphql, Param, ValueTemplate};
use crate::read::raw::IdempotencyShape;
use crate::read::spans::YamlTarget;
use crate::template::Hole;

impl CatalogResolver<'_> {
    pub(super) fn resolve_graphql(
        &mut self,
        written: &WrittenCapability<'_>,
        text: &str,
        params: &IndexMap<String, Param>,
    ) -> Option<Graphql> {
        let at = written.at.key("graphql");
        let tree = Parser::new(text).parse();
        if let Some(error) = tree.errors().next() {
            self.report_mapping(
                written,
                at.on_value(),
                format!("not a GraphQL document: {}", shorten_to_one_line(error.message())),
            );
            return None;
        }
        let document = tree.document();
        let operation = self.find_operation(written, &document)?;
        let declared: BTreeSet<String> = operation
            .variable_definitions()
            .into_iter()
            .flat_map(|d| d.variable_definitions())
            .filter_map(|d| Some(d.variable()?.name()?.text().to_string()))
            .collect();
        self.check_declared(written, &document, &declared);
        self.check_spreads(written, &document);
        let all = written.at.key("variables");
        let mut variables = IndexMap::new();
        for (variable, value) in &written.raw.variables {
            variables.insert(variable.clone(), self.resolve_value_template(&all.key(variable), written.name, value)?);
        }
        self.fill_variables(written, &declared, params, &mut variables)?;
        let path = self.raw.graphql.clone().unwrap_or_else(|| "/graphql".to_owned());
        Some(Graphql { path, document: self.split_at_selections(&document, text), variables })
    }

    fn report_mapping(&mut self, written: &WrittenCapability<'_>, target: YamlTarget, message: String) {
        self.report(Mistake::new(codes::MAPPING, target, format!("`{}`: {message}", written.name)));
    }

    /// Returns the only operation of the document. Reports several operations, or an operation that does not fit the
    /// capability's kind.
    fn find_operation(
        &mut self,
        written: &WrittenCapability<'_>,
        document: &cst::Document,
    ) -> Option<cst::OperationDefinition> {
        let at = written.at.key("graphql");
        let mut operations = document
            .definitions()
            .filter_map(|d| if let cst::Definition::OperationDefinition(o) = d { Some(o) } else { None });
        let (Some(operation), None) = (operations.next(), operations.next()) else {
            self.report_mapping(written, at.on_value(), "write exactly one operation".to_owned());
            return None;
        };
        let kind = operation.operation_type();
        let mutation = kind.as_ref().is_some_and(|t| t.mutation_token().is_some());
        let subscription = kind.as_ref().is_some_and(|t| t.subscription_token().is_some());
        if mutation == written.kind.is_read() || subscription {
            let fix = if written.kind.is_read() { "a read is a `query`" } else { "a write is a `mutation`" };
            let word = if subscription { "subscription" } else { "mutation" };
            self.report_mapping(written, at.on_word(word), fix.to_owned());
            return None;
        }
        Some(operation)
    }

    /// Reports variables that the document uses without declaring them.
    fn check_declared(
        &mut self,
        written: &WrittenCapability<'_>,
        document: &cst::Document,
        declared: &BTreeSet<String>,
    ) {
        let used = document.syntax().descendants().filter_map(cst::Variable::cast);
        let used: BTreeSet<String> = used.filter_map(|v| Some(v.name()?.text().to_string())).collect();
        for name in used.difference(declared) {
            let near = similar_names(name, declared.iter().map(String::as_str));
            let message = format!("`{}`: `${name}` is not declared; write `query(${name}: String)`", written.name);
            let target = written.at.key("graphql").on_word(format!("${name}"));
            self.report(Mistake::new(codes::MAPPING, target, message).with_alternatives(near));
        }
    }

    /// Reports a spread (`...Name`) whose name is neither an entity nor a fragment of the document. At a spread with
    /// an entity's name, binding inserts the needed fields.
    fn check_spreads(&mut self, written: &WrittenCapability<'_>, document: &cst::Document) {
        let fragments: BTreeSet<String> = document
            .definitions()
            .filter_map(|d| if let cst::Definition::FragmentDefinition(f) = d { Some(f) } else { None })
            .filter_map(|f| Some(f.fragment_name()?.name()?.text().to_string()))
            .collect();
        for spread in document.syntax().descendants().filter_map(cst::FragmentSpread::cast) {
            let Some(name) = spread.fragment_name().and_then(|f| f.name()).map(|n| n.text().to_string()) else {
                continue;
            };
            if !fragments.contains(&name) && !self.raw.entities.contains_key(&name) {
                let near = similar_names(&name, self.raw.entities.keys().map(String::as_str));
                let message =
                    format!("`{}`: `...{name}` is neither an entity nor a fragment of the document", written.name);
                let target = written.at.key("graphql").on_word(name);
                self.report(Mistake::new(codes::NAME, target, message).with_alternatives(near));
            }
        }
    }

    /// Adds the declared variables that `variables` lacks, each with a hole for the parameter or the part of the key
    /// of the same name. Returns `None` if a declared variable has no source, or if an undeclared variable would be
    /// sent.
    fn fill_variables(
        &mut self,
        written: &WrittenCapability<'_>,
        declared: &BTreeSet<String>,
        params: &IndexMap<String, Param>,
        variables: &mut IndexMap<String, ValueTemplate>,
    ) -> Option<()> {
        let paging = written.raw.paging.as_ref();
        let default_cursor = "after".to_owned();
        let cursor = paging.filter(|p| p.connection.is_some()).map(|p| p.send.as_ref().unwrap_or(&default_cursor));
        let page_params =
            paging.map(|p| [p.page.as_ref(), p.offset.as_ref(), p.send.as_ref(), p.size.as_ref().map(|s| &s.send)]);
        let idempotency_key = match &written.raw.idempotency {
            Some(IdempotencyShape::Body(path)) => path.split('.').next(),
            _ => None,
        };
        let filled_at_call: BTreeSet<&str> = page_params
            .into_iter()
            .flatten()
            .chain([cursor])
            .flatten()
            .map(String::as_str)
            .chain(idempotency_key)
            .collect();
        for variable in declared {
            if variables.contains_key(variable) || filled_at_call.contains(variable.as_str()) {
                continue;
            }
            if !params.contains_key(variable) && !is_filled_by_instance(written, variable) {
                let known: Vec<String> = similar_names(variable, params.keys().map(String::as_str));
                let message = format!("`{}`: nothing fills `${variable}`", written.name);
                let target = written.at.key("graphql").on_word(format!("${variable}"));
                self.report(Mistake::new(codes::MAPPING, target, message).with_alternatives(known));
                return None;
            }
            let hole = Hole { param: variable.clone(), part: None, segments: false };
            variables.insert(variable.clone(), ValueTemplate::Hole(hole));
        }
        let stray = variables.keys().map(String::as_str).chain(filled_at_call).find(|v| !declared.contains(*v));
        if let Some(stray) = stray {
            let target = if written.raw.variables.contains_key(stray) {
                written.at.key("variables").key(stray).on_key()
            } else {
                written.at.key("graphql").on_value()
            };
            let message = format!("the document does not declare `${stray}`");
            self.report_mapping(written, target, message);
            return None;
        }
        Some(())
    }

    /// Splits the text of the document at the spreads that name an entity.
    fn split_at_selections(&self, document: &cst::Document, text: &str) -> Document {
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
            // The range of the node may include the white space after it.
            let end = start + text[start..end].trim_end().len();
            pieces.push(DocumentPiece::Literal(text[from..start].to_owned()));
            pieces.push(DocumentPiece::Selection(entity));
            from = end;
        }
        pieces.push(DocumentPiece::Literal(text[from..].to_owned()));
        Document { pieces }
    }
}

/// Returns whether the instance before `.method(…)` fills this variable, because it is a part of the key.
fn is_filled_by_instance(written: &WrittenCapability<'_>, variable: &str) -> bool {
    let raw = written.raw;
    let has_instance = raw.get.is_some() || raw.update.is_some() || raw.delete.is_some() || raw.action.is_some();
    has_instance && written.entity.key.iter().any(|part| part == variable)
}

/// Returns the message of the GraphQL parser on one line and shortened.
fn shorten_to_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect()
}
