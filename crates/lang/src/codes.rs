//! The codes of all diagnostics of the language.
//! Invariant: a code never changes its meaning and is never reused. Each code has a page in `docs/errors/`; a test
//! compares the pages with `ALL`.

use base::Code;

// Codes 01xx: the text cannot be parsed.
pub const UNEXPECTED: Code = Code(101);
pub const UNCLOSED_STRING: Code = Code(102);
pub const UNCLOSED_HEREDOC: Code = Code(103);
pub const BAD_ESCAPE: Code = Code(104);
pub const BAD_CHARACTER: Code = Code(105);
pub const UNCLOSED_BRACKET: Code = Code(106);
pub const EMPTY_PROGRAM: Code = Code(107);
pub const BAD_NUMBER: Code = Code(108);
pub const BAD_HEREDOC_OPENER: Code = Code(109);
pub const NESTED_TOO_DEEP: Code = Code(110);
pub const PROGRAM_TOO_LARGE: Code = Code(111);
pub const TOO_MANY_STATEMENTS: Code = Code(112);
pub const ROOTS_NOT_LAST: Code = Code(113);
/// A note that there are more mistakes than the diagnostics show.
pub const MORE_MISTAKES: Code = Code(114);

// Codes 02xx: a name is not known in the scope.
pub const UNKNOWN_NAME: Code = Code(201);
pub const UNKNOWN_ENTITY: Code = Code(202);
pub const AMBIGUOUS_ENTITY: Code = Code(203);
pub const UNKNOWN_FILTER: Code = Code(204);
pub const UNKNOWN_FIELD: Code = Code(205);
pub const UNKNOWN_RELATION: Code = Code(206);
pub const DUPLICATE_LABEL: Code = Code(207);
pub const LABEL_LOOKS_LIKE_SYMBOL: Code = Code(208);
pub const NOT_TAUGHT: Code = Code(209);
pub const UNKNOWN_METHOD: Code = Code(210);
pub const UNKNOWN_ARGUMENT: Code = Code(211);
pub const UNKNOWN_ARM: Code = Code(212);

// Codes 03xx: a name is known, but it is used wrongly.
pub const WRONG_TYPE: Code = Code(301);
pub const NOT_A_CHOICE: Code = Code(302);
pub const MISSING_ARGUMENT: Code = Code(303);
pub const DUPLICATE_ARGUMENT: Code = Code(304);
pub const WRONG_OPERATOR: Code = Code(305);
pub const NO_LIST: Code = Code(306);
pub const NO_GET: Code = Code(307);
pub const KEY_MISMATCH: Code = Code(308);
pub const PLACEHOLDER: Code = Code(309);
pub const BAD_LIMIT: Code = Code(310);
pub const FILTER_ON_ROWS: Code = Code(311);
pub const WRONG_RECEIVER: Code = Code(312);
pub const MANY_ROWS: Code = Code(313);
pub const ROW_OUTSIDE: Code = Code(314);
pub const NOT_AN_EFFECT: Code = Code(315);
pub const BAD_TEMPLATE: Code = Code(316);
pub const NO_SEARCH: Code = Code(317);
pub const BAD_PAGE_SIZE: Code = Code(318);
pub const NO_WAY_BACK: Code = Code(319);
pub const BAD_HANDLE: Code = Code(320);
pub const DOES_NOT_COMPARE: Code = Code(321);
pub const EFFECT_AS_VALUE: Code = Code(322);

/// Every code of this file. A test compares the list with the documentation.
pub const ALL: &[Code] = &[
    UNEXPECTED,
    UNCLOSED_STRING,
    UNCLOSED_HEREDOC,
    BAD_ESCAPE,
    BAD_CHARACTER,
    UNCLOSED_BRACKET,
    EMPTY_PROGRAM,
    BAD_NUMBER,
    BAD_HEREDOC_OPENER,
    NESTED_TOO_DEEP,
    PROGRAM_TOO_LARGE,
    TOO_MANY_STATEMENTS,
    ROOTS_NOT_LAST,
    MORE_MISTAKES,
    UNKNOWN_NAME,
    UNKNOWN_ENTITY,
    AMBIGUOUS_ENTITY,
    UNKNOWN_FILTER,
    UNKNOWN_FIELD,
    UNKNOWN_RELATION,
    DUPLICATE_LABEL,
    LABEL_LOOKS_LIKE_SYMBOL,
    NOT_TAUGHT,
    UNKNOWN_METHOD,
    UNKNOWN_ARGUMENT,
    UNKNOWN_ARM,
    WRONG_TYPE,
    NOT_A_CHOICE,
    MISSING_ARGUMENT,
    DUPLICATE_ARGUMENT,
    WRONG_OPERATOR,
    NO_LIST,
    NO_GET,
    KEY_MISMATCH,
    PLACEHOLDER,
    BAD_LIMIT,
    FILTER_ON_ROWS,
    WRONG_RECEIVER,
    MANY_ROWS,
    ROW_OUTSIDE,
    NOT_AN_EFFECT,
    BAD_TEMPLATE,
    NO_SEARCH,
    BAD_PAGE_SIZE,
    NO_WAY_BACK,
    BAD_HANDLE,
    DOES_NOT_COMPARE,
    EFFECT_AS_VALUE,
];
