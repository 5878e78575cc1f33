//! TOML read with types: every error stands at its line and column, and every table knows which of
//! its keys were asked for, so that the others can be reported.

use std::fmt::Display;
use std::str::FromStr;

use toml_edit::{ArrayOfTables, Document, Item, Key, Table, TableLike, Value};
use toml_parser::lexer::TokenKind;

use crate::formats::diagnostic::{Diagnostic, Position};
use crate::limits::NESTING_DEPTH;
use crate::relative_path::RelPath;
use crate::text::{escape, nearest, shown};
use crate::version::{Version, parse_version};

/// Parses `text`.
///
/// # Errors
/// Nesting beyond the limit, conflict markers of a merge, and whatever is no TOML, each with its
/// place.
pub(crate) fn parse_document(text: &str) -> Result<Document<&str>, Diagnostic> {
    check_nesting(text)?;
    Document::parse(text).map_err(|error| {
        merge_conflict(text).unwrap_or_else(|| {
            let offset = error.span().map_or(0, |span| span.start);
            Diagnostic::at(
                text,
                offset,
                format!("not TOML: {}", one_line(error.message())),
            )
        })
    })
}

fn one_line(message: &str) -> String {
    escape(&message.lines().collect::<Vec<_>>().join("; "))
}

/// The first conflict marker. Asked only of a text that does not parse: a description may well
/// hold a line of equal signs.
fn merge_conflict(text: &str) -> Option<Diagnostic> {
    let is_marker = |line: &str| {
        ["<<<<<<<", "=======", ">>>>>>>"]
            .iter()
            .any(|marker| line.starts_with(marker))
    };
    let (index, _) = text
        .split('\n')
        .enumerate()
        .find(|(_, line)| is_marker(line))?;
    let offset = text
        .split('\n')
        .take(index)
        .map(|line| line.len() + 1)
        .sum();
    let message = format!("merge conflict at line {}", index + 1);
    Some(Diagnostic::at(text, offset, message).hint("resolve the conflict, then run this again"))
}

/// Refuses arrays, tables and dotted keys that lie deeper than [`NESTING_DEPTH`] before anything
/// recurses into them: a header, a key and an inline table each multiply what the others allow.
fn check_nesting(text: &str) -> Result<(), Diagnostic> {
    let mut nesting = Nesting::default();
    for token in toml_parser::Source::new(text).lex() {
        nesting.step(token.kind());
        if nesting.depth > NESTING_DEPTH {
            let message = format!("nested deeper than {NESTING_DEPTH} levels");
            return Err(Diagnostic::at(text, token.span().start(), message));
        }
    }
    Ok(())
}

/// How deep the current token lies.
#[derive(Default)]
struct Nesting {
    depth: usize,
    /// The dots of the current key outside every bracket.
    key_dots: usize,
    /// The dots of the current key within each open bracket.
    brackets: Vec<usize>,
    in_header: bool,
    after_equals: bool,
}

impl Nesting {
    fn step(&mut self, token: TokenKind) {
        match token {
            TokenKind::Newline => {
                self.end_key();
                self.in_header = false;
                self.after_equals = false;
            }
            TokenKind::Comma => self.end_key(),
            TokenKind::Dot => self.dot(),
            // No header has one: what follows on a malformed line is counted as well.
            TokenKind::Equals => {
                self.after_equals = true;
                self.in_header = false;
            }
            TokenKind::LeftSquareBracket if self.begins_header() => {
                *self = Self {
                    depth: 1,
                    in_header: true,
                    ..Self::default()
                };
            }
            _ if self.in_header => {}
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
                self.brackets.push(0);
                self.depth += 1;
            }
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                self.depth -= self.brackets.pop().map_or(0, |dots| dots + 1);
            }
            _ => {}
        }
    }

    fn begins_header(&self) -> bool {
        self.brackets.is_empty() && !self.after_equals && !self.in_header
    }

    fn dot(&mut self) {
        self.depth += 1;
        if !self.in_header {
            *self.brackets.last_mut().unwrap_or(&mut self.key_dots) += 1;
        }
    }

    fn end_key(&mut self) {
        self.depth -= std::mem::take(self.brackets.last_mut().unwrap_or(&mut self.key_dots));
    }
}

/// Where the key at the end of `path` stands in `text`; `None` if there is none.
pub(crate) fn key_position(text: &str, path: &[&str]) -> Option<Position> {
    let document = parse_document(text).ok()?;
    let (last, tables) = path.split_last()?;
    let mut table: &dyn TableLike = document.as_table();
    for key in tables {
        table = table.get(key)?.as_table_like()?;
    }
    let (key, item) = table.get_key_value(last)?;
    let span = key.span().or_else(|| Node::of(item).span())?;
    Some(Position::of(text, span.start))
}

/// The line starts of a text, for many positions in it.
pub(crate) struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    /// The index of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The position of byte `offset`.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let within = Position::of(
            &self.text[self.starts[line - 1]..],
            offset - self.starts[line - 1],
        );
        Position { line, ..within }
    }
}

/// A closed set of words, with the value each stands for.
pub(crate) trait Words: Copy + 'static {
    /// Every word, in the order they are listed to the user.
    const WORDS: &'static [(&'static str, Self)];
}

/// `as_str`, `Display` and [`Words`] of an enum whose values are words.
macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $type {
            /// The word used in files and messages.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)+
                }
            }
        }
        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(self.as_str())
            }
        }
        impl $crate::formats::reader::Words for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $type::$variant)),+];
        }
    };
}
pub(crate) use words;

/// A table being read.
pub(crate) struct Reader<'a> {
    text: &'a str,
    title: String,
    offset: usize,
    table: &'a dyn TableLike,
    asked: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// The document's root.
    pub(crate) fn root(text: &'a str, document: &'a Document<&str>, title: &str) -> Self {
        Self {
            text,
            title: title.to_owned(),
            offset: 0,
            table: document.as_table(),
            asked: Vec::new(),
        }
    }

    /// The value of `key`, which counts as known from here on.
    pub(crate) fn field(&mut self, key: &'static str) -> Option<Field<'a>> {
        self.asked.push(key);
        self.table
            .get_key_value(key)
            .map(|(key, item)| self.field_of(key, item))
    }

    fn field_of(&self, key: &'a Key, item: &'a Item) -> Field<'a> {
        Field {
            text: self.text,
            name: format!("`{}` in {}", shown(key.get()), self.title),
            key: key.get(),
            key_offset: key.span().map_or(self.offset, |span| span.start),
            node: Node::of(item),
        }
    }

    /// What `read` makes of the value of `key`, if there is one.
    pub(crate) fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Field<'a>) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.field(key).map(|field| read(&field)).transpose()
    }

    /// The value of `key`, or an error that says it is missing.
    pub(crate) fn required(&mut self, key: &'static str) -> Result<Field<'a>, Diagnostic> {
        self.field(key)
            .ok_or_else(|| self.error(format!("{} has no `{key}`", self.title)))
    }

    /// The string under `key`.
    pub(crate) fn string(&mut self, key: &'static str) -> Result<Option<String>, Diagnostic> {
        self.get(key, |field| field.str().map(str::to_owned))
    }

    /// The table under `key`.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Option<Reader<'a>>, Diagnostic> {
        self.get(key, |field| field.table(&format!("[{key}]")))
    }

    /// The tables of the array under `key`.
    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<Reader<'a>>, Diagnostic> {
        let tables = self.get(key, |field| field.tables(&format!("[[{key}]]")))?;
        Ok(tables.unwrap_or_default())
    }

    /// Every entry of a table whose keys are free.
    pub(crate) fn entries(&self) -> Vec<Field<'a>> {
        self.table
            .iter()
            .filter_map(|(key, _)| self.table.get_key_value(key))
            .map(|(key, item)| self.field_of(key, item))
            .collect()
    }

    /// Keys that are accepted and mean nothing here.
    pub(crate) fn accept(&mut self, keys: &[&'static str]) {
        self.asked.extend(keys);
    }

    /// One diagnostic for each key that nobody asked for.
    pub(crate) fn unknown(&self) -> Vec<Diagnostic> {
        self.entries()
            .iter()
            .filter(|field| !self.asked.contains(&field.key))
            .map(|field| self.unknown_key(field))
            .collect()
    }

    fn unknown_key(&self, field: &Field<'a>) -> Diagnostic {
        let message = format!("unknown key {}", field.name);
        let diagnostic = Diagnostic::at(self.text, field.key_offset, message);
        match nearest(field.key, self.asked.iter().copied()) {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
            None => diagnostic,
        }
    }

    /// Refuses a key that nobody asked for.
    pub(crate) fn refuse_unknown(&self) -> Result<(), Diagnostic> {
        self.unknown().into_iter().next().map_or(Ok(()), Err)
    }

    /// An error about the table as a whole.
    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(self.text, self.offset, message)
    }

    /// What the table is called in messages.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Where the table begins.
    pub(crate) fn position(&self) -> Position {
        Position::of(self.text, self.offset)
    }
}

#[derive(Clone, Copy)]
enum Node<'a> {
    Value(&'a Value),
    Table(&'a Table),
    Tables(&'a ArrayOfTables),
    Nothing,
}

impl<'a> Node<'a> {
    fn of(item: &'a Item) -> Self {
        match item {
            Item::None => Node::Nothing,
            Item::Value(value) => Node::Value(value),
            Item::Table(table) => Node::Table(table),
            Item::ArrayOfTables(tables) => Node::Tables(tables),
        }
    }

    fn span(self) -> Option<std::ops::Range<usize>> {
        match self {
            Node::Value(value) => value.span(),
            Node::Table(table) => table.span(),
            Node::Tables(tables) => tables.span(),
            Node::Nothing => None,
        }
    }
}

/// A value being read, with its name for messages.
pub(crate) struct Field<'a> {
    text: &'a str,
    /// The key.
    pub(crate) key: &'a str,
    /// Where the key stands, in bytes.
    pub(crate) key_offset: usize,
    name: String,
    node: Node<'a>,
}

impl<'a> Field<'a> {
    fn offset(&self) -> usize {
        self.node.span().map_or(self.key_offset, |span| span.start)
    }

    /// An error at the value.
    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(self.text, self.offset(), message)
    }

    /// An error at the key.
    pub(crate) fn key_error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(self.text, self.key_offset, message)
    }

    /// The error of a value that is not what is wanted.
    pub(crate) fn wrong(&self, wanted: impl Display) -> Diagnostic {
        let source = match self.node {
            Node::Table(_) => "a table",
            Node::Tables(_) => "an array of tables",
            Node::Nothing => "nothing",
            Node::Value(_) => self
                .node
                .span()
                .and_then(|span| self.text.get(span))
                .unwrap_or("a table"),
        };
        self.error(format!(
            "{} must be {wanted}, not {}",
            self.name,
            shown(source)
        ))
    }

    /// The error of a value whose text breaks a rule that `reason` states.
    fn refused(&self, reason: impl Display) -> Diagnostic {
        self.error(format!("{}: {reason}", self.name))
    }

    fn value(&self) -> Option<&'a Value> {
        match self.node {
            Node::Value(value) => Some(value),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub(crate) fn as_str(&self) -> Option<&'a str> {
        self.value().and_then(Value::as_str)
    }

    /// A string.
    pub(crate) fn str(&self) -> Result<&'a str, Diagnostic> {
        self.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// A string that holds something and no character that acts on a terminal.
    pub(crate) fn plain_str(&self) -> Result<&'a str, Diagnostic> {
        let text = self.str()?;
        if text.trim().is_empty() {
            return Err(self.refused("it must not be empty"));
        }
        if escape(text) != text {
            let message = format!("`{}` has a character that cannot be shown", shown(text));
            return Err(self.refused(message));
        }
        Ok(text)
    }

    /// A string that may become an argument of a program: plain, and no option.
    pub(crate) fn argument(&self) -> Result<&'a str, Diagnostic> {
        let text = self.plain_str()?;
        if text.starts_with('-') {
            return Err(self.refused(format!("`{}` begins with a hyphen", shown(text))));
        }
        Ok(text)
    }

    /// An array of plain strings.
    pub(crate) fn names(&self) -> Result<Vec<String>, Diagnostic> {
        self.list(|field| field.plain_str().map(str::to_owned))
    }

    /// A version.
    pub(crate) fn version(&self) -> Result<Version, Diagnostic> {
        parse_version(self.str()?).map_err(|error| self.refused(error))
    }

    /// A boolean.
    pub(crate) fn bool(&self) -> Result<bool, Diagnostic> {
        self.as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    /// The boolean, if it is one.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        self.value().and_then(Value::as_bool)
    }

    /// An integer above zero.
    pub(crate) fn positive(&self) -> Result<u64, Diagnostic> {
        self.value()
            .and_then(Value::as_integer)
            .and_then(|number| u64::try_from(number).ok())
            .filter(|number| *number > 0)
            .ok_or_else(|| self.wrong("an integer above zero"))
    }

    /// A string that `T` takes.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self) -> Result<T, Diagnostic> {
        self.str()?.parse().map_err(|error| self.refused(error))
    }

    /// A path in the package.
    pub(crate) fn path(&self) -> Result<RelPath, Diagnostic> {
        RelPath::new(self.str()?).map_err(|error| self.refused(error))
    }

    /// One component of a path in the package.
    pub(crate) fn component(&self) -> Result<String, Diagnostic> {
        let path = self.path()?;
        if path.parent().is_some() {
            return Err(self.wrong("one name without a slash"));
        }
        Ok(path.as_str().to_owned())
    }

    /// One of a closed set of words.
    pub(crate) fn word<T: Words>(&self) -> Result<T, Diagnostic> {
        self.as_str()
            .and_then(|text| T::WORDS.iter().find(|(word, _)| *word == text))
            .map(|(_, value)| *value)
            .ok_or_else(|| self.wrong(listed(T::WORDS)))
    }

    /// A duration as in `10m`, in seconds: an integer with `s`, `m` or `h`, 1 second to 24 hours.
    pub(crate) fn duration_seconds(&self) -> Result<u64, Diagnostic> {
        self.as_str()
            .and_then(parse_duration)
            .ok_or_else(|| self.wrong("an integer with s, m or h, from \"1s\" to \"24h\""))
    }

    /// The elements of an array.
    pub(crate) fn elements(&self) -> Result<Vec<Field<'a>>, Diagnostic> {
        let array = self
            .value()
            .and_then(Value::as_array)
            .ok_or_else(|| self.wrong("an array"))?;
        Ok(array.iter().map(|value| self.element(value)).collect())
    }

    fn element(&self, value: &'a Value) -> Field<'a> {
        Field {
            text: self.text,
            key: self.key,
            key_offset: self.key_offset,
            name: self.name.clone(),
            node: Node::Value(value),
        }
    }

    /// An array of strings, each made by `read`.
    pub(crate) fn list<T>(
        &self,
        read: impl Fn(&Field<'a>) -> Result<T, Diagnostic>,
    ) -> Result<Vec<T>, Diagnostic> {
        self.elements()?.iter().map(read).collect()
    }

    /// A table, called `title` from here on.
    pub(crate) fn table(&self, title: &str) -> Result<Reader<'a>, Diagnostic> {
        self.as_table(title).ok_or_else(|| self.wrong("a table"))
    }

    /// The table, if it is one.
    pub(crate) fn as_table(&self, title: &str) -> Option<Reader<'a>> {
        let table: &'a dyn TableLike = match self.node {
            Node::Table(table) => table,
            Node::Value(value) => value.as_inline_table()?,
            Node::Tables(_) | Node::Nothing => return None,
        };
        Some(self.reader(title, table))
    }

    fn reader(&self, title: &str, table: &'a dyn TableLike) -> Reader<'a> {
        Reader {
            text: self.text,
            title: title.to_owned(),
            offset: self.offset(),
            table,
            asked: Vec::new(),
        }
    }

    /// An array of tables, inline or by headers.
    fn tables(&self, title: &str) -> Result<Vec<Reader<'a>>, Diagnostic> {
        if let Node::Tables(tables) = self.node {
            let reader = |table: &'a Table| Reader {
                offset: table.span().map_or(self.key_offset, |span| span.start),
                ..self.reader(title, table)
            };
            return Ok(tables.iter().map(reader).collect());
        }
        let tables = self
            .elements()
            .map_err(|_| self.wrong("an array of tables"))?;
        tables.iter().map(|field| field.table(title)).collect()
    }

    /// Whether the value holds something: not an empty array, table or array of tables, all
    /// through.
    pub(crate) fn is_filled(&self) -> bool {
        match self.node {
            Node::Value(Value::Array(array)) => !array.is_empty(),
            Node::Tables(tables) => !tables.is_empty(),
            _ => self
                .as_table("")
                .is_none_or(|table| table.entries().iter().any(|field| field.is_filled())),
        }
    }
}

fn listed<T>(words: &[(&str, T)]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|(word, _)| format!("\"{word}\""))
        .collect();
    match quoted.as_slice() {
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
        [] => String::new(),
    }
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

fn parse_duration(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds = digits.parse::<u64>().ok()?.checked_mul(unit_seconds)?;
    (1..=DAY_SECONDS).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_index_agrees_with_the_position_in_the_text() {
        let text = "a\n\nb\u{e9}c\nlonger\nx";
        let lines = LineIndex::new(text);
        for offset in (0..=text.len()).filter(|offset| text.is_char_boundary(*offset)) {
            assert_eq!(
                lines.position(offset),
                Position::of(text, offset),
                "{offset}"
            );
        }
    }
}
