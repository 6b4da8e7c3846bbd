// Cuts GitHub's OpenAPI description down to the routes sidegate calls, and to what those refer to.
//
//   node trim.mjs api.github.com.json trimmed.json
import { readFileSync, writeFileSync } from 'node:fs'

const ROUTES = {
  '/repos/{owner}/{repo}/pulls': ['get'],
  '/repos/{owner}/{repo}/pulls/{pull_number}': ['get'],
  '/repos/{owner}/{repo}/issues/{issue_number}/comments': ['get', 'post'],
  '/repos/{owner}/{repo}/issues/comments/{comment_id}': ['patch', 'delete'],
  '/user': ['get'],
}

const [from, to] = process.argv.slice(2)
const whole = JSON.parse(readFileSync(from, 'utf8'))
const small = { openapi: whole.openapi, info: whole.info, servers: whole.servers, paths: {}, components: {} }

for (const [path, methods] of Object.entries(ROUTES)) {
  const known = whole.paths[path]
  if (!known) throw new Error(`${from} does not describe ${path}`)
  small.paths[path] = {}
  for (const key of Object.keys(known)) {
    // What is not a method (parameters of the path) stays.
    const method = ['get', 'put', 'post', 'patch', 'delete', 'head', 'options', 'trace'].includes(key)
    if (!method || methods.includes(key)) small.paths[path][key] = withoutExamples(known[key])
  }
  for (const method of methods) {
    if (!small.paths[path][method]) throw new Error(`${from} does not describe ${method} ${path}`)
  }
}

// Examples are most of the text, and nothing is checked against them.
function withoutExamples(node) {
  if (Array.isArray(node)) return node.map(withoutExamples)
  if (node === null || typeof node !== 'object') return node
  const kept = Object.entries(node).filter(([key, value]) => key !== 'examples' || isSchema(value))
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutExamples(value)]))
}

// A property may be called `examples`.
function isSchema(value) {
  return value !== null && typeof value === 'object' && ('type' in value || '$ref' in value)
}

const waiting = [small.paths]
while (waiting.length > 0) {
  const node = waiting.pop()
  if (node === null || typeof node !== 'object') continue
  for (const [key, value] of Object.entries(node)) {
    if (key === '$ref' && typeof value === 'string') take(value)
    else waiting.push(value)
  }
}

function take(ref) {
  const [kind, name] = ref.replace('#/components/', '').split('/')
  small.components[kind] ??= {}
  if (small.components[kind][name]) return
  const part = withoutExamples(whole.components[kind][name])
  small.components[kind][name] = part
  waiting.push(part)
}

writeFileSync(to, JSON.stringify(small))
