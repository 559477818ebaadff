//! How to read the table and write a program: the lines before the first wave.
//! Invariant: at most 400 o200k tokens, and only productions that this build runs.

pub const LINES: &[&str] = &[
    "# Write a program: lines `name = expr`, then one last line of results `expr, expr`. Lists are read over all pages.",
    "# Left cells are expressions to copy; right cells say what they return ([e1] many, e1 one) and name slots with types (no type: string).",
    "# Replace every $ with a value; never leave a $. opt slots go into the same {} or ().",
    "# Values: \"string\", 42, true, null, [a, b], e1(p1=..) for a reference.",
    "# {..} on e# filters at the API; comma means and. Follow with .r# or a slot of type e#: ticket.p13[p27].",
    "# Then any of: .limit(5) [p1, p4].",
];
