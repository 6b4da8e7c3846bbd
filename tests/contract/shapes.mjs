// Makes the least that GitHub's OpenAPI description takes for a pull request, a comment and a user: every mandatory
// field with a value of its type. The fake in tests/it/github/ fills in what matters. Run it again when `make contract`
// says that a field is missing:
//
//   node tests/contract/shapes.mjs target/contract/trimmed.json > tests/data/github/shapes.json
import { readFileSync } from 'node:fs'

const described = JSON.parse(readFileSync(process.argv[2], 'utf8'))

function least(schema, inside = false) {
  while (schema.$ref) schema = schema.$ref.split('/').slice(1).reduce((node, key) => node[key], described)
  if (schema.nullable && inside) return null
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => least(part, inside)))
  const either = schema.oneOf ?? schema.anyOf
  if (either) return least(either[0], inside)
  if (schema.enum) return schema.enum[0]
  if (schema.type === 'object' || schema.properties) {
    const fields = (schema.required ?? []).map((name) => [name, least(schema.properties[name] ?? {}, true)])
    return Object.fromEntries(fields)
  }
  return plain(schema)
}

function plain({ type, format }) {
  if (type === 'array') return []
  if (type === 'boolean') return false
  if (type === 'integer' || type === 'number') return 1
  if (format === 'uri') return 'https://git.example/x'
  if (format === 'date-time') return '2026-11-30T00:00:00Z'
  return type === 'string' ? 'x' : null
}

const { schemas } = described.components
const shapes = {
  pull: { ...least(schemas['pull-request-simple']), ...least(schemas['pull-request']) },
  comment: { ...least(schemas['issue-comment']), body: '', author_association: 'NONE' },
  user: least(schemas['simple-user']),
  self: least(schemas['public-user']),
}
process.stdout.write(`${JSON.stringify(shapes, null, 1)}\n`)
