//! A checker for the JSON Schemas (draft 2020-12) in `docs/schemas`: a small one, because the validators of the
//! registry bring 35 to 50 packages each, for internationalised names, big numbers and network access, and the schemas
//! need none of these.
//!
//! In: a schema file and a document. Out: the document's deviations, each with its place, and the properties that
//! occurred. The keywords listed in [`KEYWORDS`] are known; a schema with any other is refused, so that none is
//! silently ignored.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All keywords that the schemas may use. The first five describe, the others constrain.
const KEYWORDS: [&str; 16] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "$ref",
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "properties",
    "required",
    "additionalProperties",
    "dependentRequired",
    "items",
    "anyOf",
];

/// The schema files of a folder, by file name.
pub struct Schemas {
    files: BTreeMap<String, Value>,
}

/// The place of a schema: its file, and the JSON pointer within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: String,
    pub pointer: String,
}

impl Place {
    fn below(&self, key: &str) -> Place {
        Place { file: self.file.clone(), pointer: format!("{}/{key}", self.pointer) }
    }
}

/// The result of checking documents.
#[derive(Default)]
pub struct Report {
    /// Deviations: place in the document, and what is wrong there.
    pub deviations: Vec<String>,
    /// The properties that occurred, by the place of their schema.
    pub seen: BTreeSet<Place>,
}

impl Schemas {
    /// Read all schemas of a folder. Panics on an unknown keyword, an object that is open, or a reference to nothing.
    pub fn read(folder: &Path) -> Schemas {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "json") {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                files.insert(name, serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap());
            }
        }
        let schemas = Schemas { files };
        for place in schemas.places() {
            schemas.verify(&place);
        }
        schemas
    }

    /// The file whose documents call themselves `name/version`.
    pub fn file_of(&self, document: &Value) -> Option<&str> {
        let is_it = |schema: &Value| schema.pointer("/properties/schema/const") == Some(&document["schema"]);
        self.files.iter().find(|(_, schema)| is_it(schema)).map(|(name, _)| name.as_str())
    }

    /// The file names of the schemas that describe whole documents.
    pub fn documents(&self) -> impl Iterator<Item = &str> {
        let is_document = |schema: &Value| schema.pointer("/properties/schema").is_some();
        self.files.iter().filter(move |(_, schema)| is_document(schema)).map(|(name, _)| name.as_str())
    }

    /// Every property that a schema describes.
    pub fn properties(&self) -> BTreeSet<Place> {
        let mut all = BTreeSet::new();
        for place in self.places() {
            let properties = self.at(&place).get("properties").and_then(Value::as_object);
            all.extend(properties.into_iter().flat_map(Map::keys).map(|key| place.below("properties").below(key)));
        }
        all
    }

    /// Check a document against the schema in `file`.
    pub fn check(&self, file: &str, document: &Value, report: &mut Report) {
        self.value(&Place { file: file.to_owned(), pointer: String::new() }, document, "$", report);
    }

    fn at(&self, place: &Place) -> &Value {
        let schema = self.files.get(&place.file).and_then(|file| file.pointer(&place.pointer));
        schema.unwrap_or_else(|| panic!("no schema at {}#{}", place.file, place.pointer))
    }

    /// The place of all schemas, also of those within others.
    fn places(&self) -> Vec<Place> {
        let root = |file: &String| Place { file: file.clone(), pointer: String::new() };
        let mut open: Vec<Place> = self.files.keys().map(root).collect();
        let mut all = Vec::new();
        while let Some(place) = open.pop() {
            let schema = self.at(&place);
            for group in ["$defs", "properties"] {
                let inner = schema.get(group).and_then(Value::as_object);
                open.extend(inner.into_iter().flat_map(Map::keys).map(|key| place.below(group).below(key)));
            }
            open.extend(schema.get("items").map(|_| place.below("items")));
            open.extend(
                schema
                    .get("additionalProperties")
                    .filter(|v| v.is_object())
                    .map(|_| place.below("additionalProperties")),
            );
            let options = schema.get("anyOf").and_then(Value::as_array).map_or(0, Vec::len);
            open.extend((0..options).map(|at| place.below("anyOf").below(&at.to_string())));
            all.push(place);
        }
        all
    }

    fn verify(&self, place: &Place) {
        let schema = self.at(place).as_object().unwrap_or_else(|| panic!("{place:?} is no object"));
        for keyword in schema.keys() {
            assert!(KEYWORDS.contains(&keyword.as_str()), "{place:?}: the checker does not know {keyword}");
        }
        if schema.contains_key("$ref") {
            self.at(&self.target(place, schema));
        }
        if let Some(properties) = schema.get("properties") {
            assert_eq!(schema.get("additionalProperties"), Some(&Value::Bool(false)), "{place:?} is open");
            for key in texts(schema.get("required")) {
                assert!(properties.get(key).is_some(), "{place:?} requires {key}, which it does not describe");
            }
        }
    }

    fn target(&self, place: &Place, schema: &Map<String, Value>) -> Place {
        let (file, pointer) = schema["$ref"].as_str().unwrap().split_once('#').unwrap();
        let file = if file.is_empty() { &place.file } else { file };
        Place { file: file.to_owned(), pointer: pointer.to_owned() }
    }

    fn value(&self, place: &Place, value: &Value, path: &str, report: &mut Report) {
        let schema = self.at(place).as_object().unwrap();
        let mut deviates = |what: String| report.deviations.push(format!("{path}: {what}"));
        if !is_of_type(schema.get("type"), value) {
            deviates(format!("{value} is not of type {}", schema["type"]));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            deviates(format!("{value} is not {}", schema["const"]));
        }
        if schema.get("enum").and_then(Value::as_array).is_some_and(|all| !all.contains(value)) {
            deviates(format!("{value} is none of {}", schema["enum"]));
        }
        if let Some(number) = value.as_f64() {
            let bound = |keyword| schema.get(keyword).and_then(Value::as_f64);
            if bound("minimum").is_some_and(|least| number < least)
                || bound("maximum").is_some_and(|most| number > most)
            {
                deviates(format!("{value} is out of bounds"));
            }
        }
        if schema.contains_key("$ref") {
            self.value(&self.target(place, schema), value, path, report);
        }
        if let Some(options) = schema.get("anyOf").and_then(Value::as_array) {
            self.any_of(place, options.len(), value, path, report);
        }
        if let (Some(items), true) = (value.as_array(), schema.contains_key("items")) {
            for (at, item) in items.iter().enumerate() {
                self.value(&place.below("items"), item, &format!("{path}[{at}]"), report);
            }
        }
        if let Some(members) = value.as_object() {
            self.members(place, schema, members, path, report);
        }
    }

    /// The first option without deviations is the one; where none is, those of the last are reported.
    fn any_of(&self, place: &Place, options: usize, value: &Value, path: &str, report: &mut Report) {
        let mut last = Report::default();
        for at in 0..options {
            last = Report::default();
            self.value(&place.below("anyOf").below(&at.to_string()), value, path, &mut last);
            if last.deviations.is_empty() {
                break;
            }
        }
        report.deviations.append(&mut last.deviations);
        report.seen.append(&mut last.seen);
    }

    fn members(
        &self,
        place: &Place,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        report: &mut Report,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        for (key, value) in members {
            let path = format!("{path}.{key}");
            if properties.is_some_and(|p| p.contains_key(key)) {
                let place = place.below("properties").below(key);
                self.value(&place, value, &path, report);
                report.seen.insert(place);
            } else if others == Some(&Value::Bool(false)) {
                report.deviations.push(format!("{path}: the schema has no such property"));
            } else if others.is_some_and(Value::is_object) {
                self.value(&place.below("additionalProperties"), value, &path, report);
            }
        }
        let mut required: Vec<&str> = texts(schema.get("required")).collect();
        let dependent = schema.get("dependentRequired").and_then(Value::as_object);
        let triggered = dependent.into_iter().flatten().filter(|(key, _)| members.contains_key(*key));
        required.extend(triggered.flat_map(|(_, keys)| texts(Some(keys))));
        for key in required.into_iter().filter(|key| !members.contains_key(*key)) {
            report.deviations.push(format!("{path}: the property {key} is missing"));
        }
    }
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_of_type(names: Option<&Value>, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        other => panic!("no such type: {other:?}"),
    };
    match names {
        None => true,
        Some(Value::Array(several)) => several.iter().any(is),
        Some(one) => is(one),
    }
}
