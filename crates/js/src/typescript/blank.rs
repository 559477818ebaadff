//! Walks the tree of a TypeScript source and replaces all types with spaces.
//! Invariant: every statement keeps its beginning and its end. If JavaScript would read two statements as one after
//! types were blanked, a `;` is written between the statements.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;
use ports::scripts::Thrown;

use super::edits::{Edits, ends_line};
use super::unsupported::UnsupportedSyntax;

/// The words before the name of a class member that have no effect at run time.
const MEMBER_MODIFIERS: [&str; 7] = ["public", "private", "protected", "readonly", "override", "declare", "abstract"];

/// A text that begins with one of these strings would continue the class field before it.
const FIELD_CONTINUATIONS: [&str; 4] = ["[", "*", "in", "instanceof"];

pub fn blank_types(source: &str, program: &Program<'_>) -> Result<String, Thrown> {
    let mut blanker = TypeBlanker {
        source,
        edits: Edits::default(),
        statement_ends: Vec::new(),
        angle_starts: Vec::new(),
        refused: None,
    };
    blanker.visit_program(program);
    if let Some((syntax, at)) = blanker.refused {
        return Err(syntax.to_error(source, at));
    }
    blanker.close_statements();
    Ok(blanker.edits.apply(source))
}

/// Refuses imports and exports in JavaScript.
pub fn refuse_modules(source: &str, program: &Program<'_>) -> Result<(), Thrown> {
    match program.body.iter().find(|statement| statement.as_module_declaration().is_some()) {
        Some(Statement::ImportDeclaration(import)) => {
            Err(UnsupportedSyntax::Import.to_error(source, import.span.start))
        }
        Some(export) => Err(UnsupportedSyntax::Export.to_error(source, export.span().start)),
        None => Ok(()),
    }
}

struct TypeBlanker<'s> {
    source: &'s str,
    edits: Edits,
    /// The ends of statements and fields. A `;` is written there if the last character was blanked.
    statement_ends: Vec<u32>,
    /// The positions at which a statement or the body of an arrow function begins with `<`.
    angle_starts: Vec<u32>,
    /// The first syntax that cannot be blanked.
    refused: Option<(UnsupportedSyntax, u32)>,
}

impl TypeBlanker<'_> {
    fn blank(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
    }

    /// Blanks a whole statement or class member and writes a `;` in its place.
    fn blank_statement(&mut self, span: Span) {
        self.blank(span);
        self.edits.replace(span.start as usize, ';');
    }

    fn refuse(&mut self, syntax: UnsupportedSyntax, at: u32) {
        self.refused.get_or_insert((syntax, at));
    }

    /// Replaces the `?` or `!` after a name with a space.
    fn blank_mark(&mut self, after: u32) {
        let at = skip_spaces_and_comments(self.source, after as usize);
        if matches!(self.source.as_bytes().get(at), Some(b'?' | b'!')) {
            self.edits.blank(at as u32, at as u32 + 1);
        }
    }

    /// Replaces the modifiers before the name of a class member with spaces. If `marked`, the `?` or `!` after the name
    /// is also replaced.
    fn blank_member(&mut self, start: u32, key: Span, computed: bool, marked: bool) {
        let words = words_between(self.source, start as usize, key.start as usize);
        let modifiers: Vec<_> = words.into_iter().filter(|(_, word)| MEMBER_MODIFIERS.contains(word)).collect();
        for (at, word) in &modifiers {
            self.edits.blank(*at as u32, (at + word.len()) as u32);
        }
        // If the modifier became spaces only, `public ['y'] = 2` or `private *z() {}` would continue a field `x = 1` on
        // the line before. So a `;` is written.
        if let (Some((first_at, _)), Some((last_at, last_word))) = (modifiers.first(), modifiers.last()) {
            let rest_at = skip_spaces_and_comments(self.source, last_at + last_word.len());
            let rest = self.source.get(rest_at..).unwrap_or_default();
            let is_first_word = *first_at == skip_spaces_and_comments(self.source, start as usize);
            if is_first_word && FIELD_CONTINUATIONS.iter().any(|beginning| rest.starts_with(beginning)) {
                self.edits.replace(*first_at, ';');
            }
        }
        if marked {
            // The name of a computed member is followed by a `]`.
            let end =
                if computed { skip_spaces_and_comments(self.source, key.end as usize) as u32 + 1 } else { key.end };
            self.blank_mark(end);
        }
    }

    fn note_angle_start(&mut self, start: u32) {
        if self.source.as_bytes().get(start as usize) == Some(&b'<') {
            self.angle_starts.push(start);
        }
    }

    fn has_line_end(&self, from: u32, to: u32) -> bool {
        self.source.get(from as usize..to as usize).is_some_and(|text| text.contains(ends_line))
    }

    /// Writes a `;` at the end of each statement whose last character was blanked. Otherwise the next line could
    /// continue the statement.
    fn close_statements(&mut self) {
        self.edits.sort();
        for end in std::mem::take(&mut self.statement_ends) {
            if let Some(last) = last_character(self.source, end as usize).filter(|last| self.edits.is_blank(*last)) {
                self.edits.replace(last, ';');
            }
        }
    }

    /// Returns whether a statement declares only types. Such a statement is blanked as a whole.
    fn declares_only_types(statement: &Statement<'_>) -> bool {
        let declaration = match statement {
            Statement::ExportDeclaration(export) => Some(&export.declaration),
            Statement::ExportNamedDeclaration(export) => return export.export_kind.is_type(),
            other => other.as_declaration(),
        };
        declaration.is_some_and(is_type_declaration)
    }
}

fn is_type_declaration(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::TSExternalModuleDeclaration(_) | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare || contains_only_types(&it.body),
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind.is_type(),
    }
}

fn contains_only_types(body: &TSNamespaceDeclarationBody<'_>) -> bool {
    match body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => inner.declare || contains_only_types(&inner.body),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => block.body.iter().all(TypeBlanker::declares_only_types),
    }
}

impl<'a> Visit<'a> for TypeBlanker<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        let span = it.span();
        match it {
            _ if Self::declares_only_types(it) => return self.blank_statement(span),
            Statement::TSEnumDeclaration(_) => self.refuse(UnsupportedSyntax::Enum, span.start),
            Statement::TSNamespaceDeclaration(_) => self.refuse(UnsupportedSyntax::Namespace, span.start),
            Statement::TSImportEqualsDeclaration(_) => self.refuse(UnsupportedSyntax::ImportEquals, span.start),
            Statement::ImportDeclaration(import) if import.import_kind.is_type() => return self.blank_statement(span),
            Statement::ImportDeclaration(_) => self.refuse(UnsupportedSyntax::Import, span.start),
            Statement::ExportAllDeclaration(export) if export.export_kind.is_type() => {
                return self.blank_statement(span);
            }
            Statement::ExportFromDeclaration(export) if export.export_kind.is_type() => {
                return self.blank_statement(span);
            }
            Statement::TSNamespaceExportDeclaration(_) => return self.blank_statement(span),
            Statement::ExportDefaultDeclaration(export)
                if matches!(export.declaration, ExportDefaultDeclarationKind::TSInterfaceDeclaration(_)) =>
            {
                return self.blank_statement(span);
            }
            other if other.is_module_declaration() => self.refuse(UnsupportedSyntax::Export, span.start),
            Statement::ExpressionStatement(_)
            | Statement::VariableDeclaration(_)
            | Statement::ReturnStatement(_)
            | Statement::ThrowStatement(_) => self.statement_ends.push(span.end),
            _ => {}
        }
        walk::walk_statement(self, it);
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.note_angle_start(it.span.start);
        walk::walk_expression_statement(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_mark(it.id.span().end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let Some(this) = &it.this_param {
            let comma = skip_spaces_and_comments(self.source, this.span.end as usize);
            let end = if self.source.as_bytes().get(comma) == Some(&b',') { comma as u32 + 1 } else { this.span.end };
            self.edits.blank(this.span.start, end);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_ts_this_parameter(&mut self, _: &TSThisParameter<'a>) {}

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(UnsupportedSyntax::ParameterProperty, it.span.start);
        }
        if it.optional {
            self.blank_mark(it.pattern.span().end);
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        // JavaScript allows no line end between `async`, `return` and such and the `(`, nor between the `)` and the
        // `=>`. If a blanked type contains a line end, the bracket moves to the other end of the type.
        let params = it.params.span;
        if let Some(generics) = &it.type_parameters
            && self.has_line_end(generics.span.start, params.start)
        {
            self.edits.replace(generics.span.start as usize, '(');
            self.edits.blank(params.start, params.start + 1);
        }
        if let Some(returned) = &it.return_type
            && self.has_line_end(params.end, returned.span.end)
            && let Some(last) = last_character(self.source, returned.span.end as usize)
        {
            self.edits.blank(params.end - 1, params.end);
            self.edits.replace(last, ')');
        }
        self.note_angle_start(it.body.span().start);
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.r#abstract {
            for (at, word) in words_between(self.source, it.span.start as usize, it.body.span.start as usize) {
                match word {
                    "abstract" => self.edits.blank(at as u32, (at + word.len()) as u32),
                    _ => break,
                }
            }
        }
        if let Some(first) = it.implements.first() {
            // The syntax tree has no position of the word `implements`, so the search for the word starts after the
            // last part of the class head that is before it.
            let heritage_end = it.heritage.as_ref().map(|heritage| {
                let arguments = heritage.type_arguments.as_ref().map(|arguments| arguments.span.end);
                arguments.unwrap_or(heritage.expression.span().end)
            });
            let generics_end = it.type_parameters.as_ref().map(|generics| generics.span.end);
            let name_end = it.id.as_ref().map(|id| id.span.end);
            let before_end = heritage_end.or(generics_end).or(name_end).unwrap_or(it.span.start);
            let search_from = skip_spaces_and_comments(self.source, before_end as usize);
            let offset = self.source[search_from..first.span.start as usize].find("implements").unwrap_or(0);
            self.edits.blank((search_from + offset) as u32, it.body.span.start);
        }
        walk::walk_class(self, it);
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.value.body.is_none() {
            return self.blank_statement(it.span);
        }
        self.blank_member(it.span.start, it.key.span(), it.computed, it.optional);
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.blank_statement(it.span);
        }
        self.blank_member(it.span.start, it.key.span(), it.computed, it.optional || it.definite);
        self.statement_ends.push(it.span.end);
        walk::walk_property_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        self.blank_member(it.span.start, it.key.span(), it.computed, it.definite);
        walk::walk_accessor_property(self, it);
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.blank_statement(it.span);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(UnsupportedSyntax::Decorator, it.span.start);
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.edits.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.edits.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.edits.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_instantiation_expression(&mut self, it: &TSInstantiationExpression<'a>) {
        self.edits.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        let value = it.expression.span().start;
        // If the type were blanked, `return <\nT>x` would return `undefined`, and the body of `() => <T>{}` would
        // become a block. Such assertions are refused.
        let statement_starts = ["{", "function", "class", "let", "async"];
        let becomes_statement = self.angle_starts.contains(&it.span.start)
            && self
                .source
                .get(value as usize..)
                .is_some_and(|text| statement_starts.iter().any(|start| text.starts_with(start)));
        if becomes_statement || self.has_line_end(it.span.start, value) {
            self.refuse(UnsupportedSyntax::Assertion, it.span.start);
        }
        self.edits.blank(it.span.start, value);
        self.visit_expression(&it.expression);
    }
}

/// Returns the position of the first character at or after `at` that belongs neither to a space nor to a comment.
fn skip_spaces_and_comments(source: &str, mut at: usize) -> usize {
    loop {
        let rest = source.get(at..).unwrap_or_default();
        let space = rest.len() - rest.trim_start().len();
        at += space;
        let rest = &rest[space..];
        if let Some(line) = rest.strip_prefix("//") {
            at += 2 + line.find(ends_line).unwrap_or(line.len());
        } else if let Some(block) = rest.strip_prefix("/*") {
            at += block.find("*/").map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
}

/// Returns the words from `from` to `to` with their positions. The search ends earlier at the first character that is
/// neither part of a word nor a space.
fn words_between(source: &str, from: usize, to: usize) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = skip_spaces_and_comments(source, from);
    while at < to {
        let rest = &source[at..to];
        let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        if length == 0 {
            break;
        }
        words.push((at, &rest[..length]));
        at = skip_spaces_and_comments(source, at + length);
    }
    words
}

/// Returns the position of the last character before `end`.
fn last_character(source: &str, end: usize) -> Option<usize> {
    source.get(..end)?.char_indices().next_back().map(|(at, _)| at)
}
