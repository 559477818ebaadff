//! The walk over a TypeScript tree that finds what is a type.
//! Invariant: a statement that ended at a type still ends there, and one that began after a type still begins there: where
//! a blank would let two statements run together, it leaves a `;`.

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;
use ports::scripts::Thrown;

use super::edits::{Edits, ends_line};
use super::refusal::Refusal;
use super::words;

/// Words before a member's name that mean nothing when it runs.
const MODIFIERS: [&str; 7] = ["public", "private", "protected", "readonly", "override", "declare", "abstract"];

/// What the member before could go on with.
const GOES_ON: [&str; 4] = ["[", "*", "in", "instanceof"];

pub fn types(source: &str, program: &Program<'_>) -> Result<String, Thrown> {
    let mut types = Types { source, edits: Edits::default(), ends: Vec::new(), starts: Vec::new(), refused: None };
    types.visit_program(program);
    if let Some((refusal, place)) = types.refused {
        return Err(refusal.at(source, place));
    }
    types.close_statements();
    Ok(types.edits.apply(source))
}

/// Nothing is imported or exported in this JavaScript.
pub fn modules(source: &str, program: &Program<'_>) -> Result<(), Thrown> {
    let found = program.body.iter().find(|statement| statement.as_module_declaration().is_some());
    match found {
        Some(Statement::ImportDeclaration(import)) => Err(Refusal::Import.at(source, import.span.start)),
        Some(export) => Err(Refusal::Export.at(source, export.span().start)),
        None => Ok(()),
    }
}

struct Types<'s> {
    source: &'s str,
    edits: Edits,
    /// Where statements and fields end that may need a `;`.
    ends: Vec<u32>,
    /// Where a statement or an arrow's body begins with `<`.
    starts: Vec<u32>,
    refused: Option<(Refusal, u32)>,
}

impl Types<'_> {
    fn blank(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
    }

    /// A whole statement or member, which leaves a `;`.
    fn drop_whole(&mut self, span: Span) {
        self.blank(span);
        self.edits.put(span.start as usize, ';');
    }

    fn refuse(&mut self, refusal: Refusal, place: u32) {
        self.refused.get_or_insert((refusal, place));
    }

    /// A `?` or `!` behind a name.
    fn mark(&mut self, after: u32) {
        let at = words::next(self.source, after as usize);
        if matches!(self.source.as_bytes().get(at), Some(b'?' | b'!')) {
            self.edits.blank(at as u32, at as u32 + 1);
        }
    }

    /// The words before a member's name, and the `?` or `!` behind it.
    fn member(&mut self, start: u32, key: Span, computed: bool, marked: bool) {
        let words = words::words(self.source, start as usize, key.start as usize);
        let taken: Vec<_> = words.into_iter().filter(|(_, word)| MODIFIERS.contains(word)).collect();
        for (at, word) in &taken {
            self.edits.blank(*at as u32, (at + word.len()) as u32);
        }
        // `x = 1` and, in the next line, `public ['y'] = 2` or `private *z() {}`: without the word one would go on as the other.
        if let (Some((first, _)), Some((last, word))) = (taken.first(), taken.last()) {
            let then = self.source.get(words::next(self.source, last + word.len())..).unwrap_or_default();
            if *first == words::next(self.source, start as usize) && GOES_ON.iter().any(|start| then.starts_with(start))
            {
                self.edits.put(*first, ';');
            }
        }
        if marked {
            let end = if computed { words::next(self.source, key.end as usize) as u32 + 1 } else { key.end };
            self.mark(end);
        }
    }

    fn starts_with(&mut self, start: u32) {
        if self.source.as_bytes().get(start as usize) == Some(&b'<') {
            self.starts.push(start);
        }
    }

    fn has_line_end(&self, from: u32, to: u32) -> bool {
        self.source.get(from as usize..to as usize).is_some_and(|text| text.contains(ends_line))
    }

    /// Where a statement's last word was a type and its end was the end of the line.
    fn close_statements(&mut self) {
        self.edits.sort();
        for end in std::mem::take(&mut self.ends) {
            if let Some(last) = words::last(self.source, end as usize).filter(|last| self.edits.is_blank(*last)) {
                self.edits.put(last, ';');
            }
        }
    }

    /// A declaration that is only about types; `None` where there is more to it.
    fn only_types(statement: &Statement<'_>) -> bool {
        let declaration = match statement {
            Statement::ExportDeclaration(export) => Some(&export.declaration),
            Statement::ExportNamedDeclaration(export) => return export.export_kind.is_type(),
            other => other.as_declaration(),
        };
        declaration.is_some_and(declares_types)
    }
}

fn declares_types(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::TSExternalModuleDeclaration(_) | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare || names_types(&it.body),
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind.is_type(),
    }
}

fn names_types(body: &TSNamespaceDeclarationBody<'_>) -> bool {
    match body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => inner.declare || names_types(&inner.body),
        TSNamespaceDeclarationBody::TSModuleBlock(block) => block.body.iter().all(Types::only_types),
    }
}

impl<'a> Visit<'a> for Types<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        let span = it.span();
        match it {
            _ if Self::only_types(it) => return self.drop_whole(span),
            Statement::TSEnumDeclaration(_) => self.refuse(Refusal::Enum, span.start),
            Statement::TSNamespaceDeclaration(_) => self.refuse(Refusal::Namespace, span.start),
            Statement::TSImportEqualsDeclaration(_) => self.refuse(Refusal::ImportEquals, span.start),
            Statement::ImportDeclaration(import) if import.import_kind.is_type() => return self.drop_whole(span),
            Statement::ImportDeclaration(_) => self.refuse(Refusal::Import, span.start),
            Statement::ExportAllDeclaration(export) if export.export_kind.is_type() => return self.drop_whole(span),
            Statement::ExportFromDeclaration(export) if export.export_kind.is_type() => return self.drop_whole(span),
            Statement::TSNamespaceExportDeclaration(_) => return self.drop_whole(span),
            Statement::ExportDefaultDeclaration(export)
                if matches!(export.declaration, ExportDefaultDeclarationKind::TSInterfaceDeclaration(_)) =>
            {
                return self.drop_whole(span);
            }
            other if other.is_module_declaration() => self.refuse(Refusal::Export, span.start),
            Statement::ExpressionStatement(_)
            | Statement::VariableDeclaration(_)
            | Statement::ReturnStatement(_)
            | Statement::ThrowStatement(_) => self.ends.push(span.end),
            _ => {}
        }
        walk::walk_statement(self, it);
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.starts_with(it.span.start);
        walk::walk_expression_statement(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.mark(it.id.span().end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let Some(this) = &it.this_param {
            let comma = words::next(self.source, this.span.end as usize);
            let end = if self.source.as_bytes().get(comma) == Some(&b',') { comma as u32 + 1 } else { this.span.end };
            self.edits.blank(this.span.start, end);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_ts_this_parameter(&mut self, _: &TSThisParameter<'a>) {}

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            self.refuse(Refusal::ParameterProperty, it.span.start);
        }
        if it.optional {
            self.mark(it.pattern.span().end);
        }
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        // No line may end between `async`, `return` and such and the `(`, nor between the `)` and the `=>`.
        let params = it.params.span;
        if let Some(generics) = &it.type_parameters
            && self.has_line_end(generics.span.start, params.start)
        {
            self.edits.put(generics.span.start as usize, '(');
            self.edits.blank(params.start, params.start + 1);
        }
        if let Some(returned) = &it.return_type
            && self.has_line_end(params.end, returned.span.end)
            && let Some(last) = words::last(self.source, returned.span.end as usize)
        {
            self.edits.blank(params.end - 1, params.end);
            self.edits.put(last, ')');
        }
        self.starts_with(it.body.span().start);
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.r#abstract {
            for (at, word) in words::words(self.source, it.span.start as usize, it.body.span.start as usize) {
                match word {
                    "abstract" => self.edits.blank(at as u32, (at + word.len()) as u32),
                    _ => break,
                }
            }
        }
        if let Some(first) = it.implements.first() {
            let heritage = it.heritage.as_ref().map(|heritage| {
                let arguments = heritage.type_arguments.as_ref().map(|arguments| arguments.span.end);
                arguments.unwrap_or(heritage.expression.span().end)
            });
            let generics = it.type_parameters.as_ref().map(|generics| generics.span.end);
            let named = heritage.or(generics).or(it.id.as_ref().map(|id| id.span.end)).unwrap_or(it.span.start);
            let known = words::next(self.source, named as usize);
            let found = self.source[known..first.span.start as usize].find("implements").unwrap_or(0);
            self.edits.blank((known + found) as u32, it.body.span.start);
        }
        walk::walk_class(self, it);
    }

    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.value.body.is_none() {
            return self.drop_whole(it.span);
        }
        self.member(it.span.start, it.key.span(), it.computed, it.optional);
        walk::walk_method_definition(self, it);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            return self.drop_whole(it.span);
        }
        self.member(it.span.start, it.key.span(), it.computed, it.optional || it.definite);
        self.ends.push(it.span.end);
        walk::walk_property_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        self.member(it.span.start, it.key.span(), it.computed, it.definite);
        walk::walk_accessor_property(self, it);
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.drop_whole(it.span);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.refuse(Refusal::Decorator, it.span.start);
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
        // `return <\nT>x` would return nothing, and `() => <T>{}` would be a block.
        let other = ["{", "function", "class", "let", "async"];
        let read_otherwise = self.starts.contains(&it.span.start)
            && self.source.get(value as usize..).is_some_and(|text| other.iter().any(|start| text.starts_with(start)));
        if read_otherwise || self.has_line_end(it.span.start, value) {
            self.refuse(Refusal::Assertion, it.span.start);
        }
        self.edits.blank(it.span.start, value);
        self.visit_expression(&it.expression);
    }
}
