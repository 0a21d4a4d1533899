/** What prompt files and skills share: how files are read, their paths, and how their texts stand in the agent's text. */
import type { FaultCollector } from './fault.ts'
import { references } from './reference.ts'
import { formsOf } from '../fold/secret-forms.ts'

/**
 * Returns the text of a file by its path relative to the agent's file. Throws an error whose message continues "the file x …",
 * such as `is missing`.
 */
export interface ReadText {
  (path: string): string
  /** Returns the names of the folders in a folder, for `skills`. Throws like `readText`. Without it, no skills are read. */
  folders?(path: string): string[]
}

/** A value that the text of an agent must not contain. */
export interface Secret {
  value: string
  /** Where it is stored: `the environment variable OPENAI_API_KEY`. */
  from: string
  /** The correct value. */
  cure: string
}

/** With folders, for `skills`. */
export type ReadFolder = ReadText & Required<Pick<ReadText, 'folders'>>

export interface InlineOptions {
  faults: FaultCollector
  /** Without it, every file is a fault. */
  readText: ReadText | undefined
  secrets: readonly Secret[] | undefined
}

/** Checks that a path stays below the folder of the agent's file. Resolving links is up to `readText`. */
export function pathFault(path: string): string | undefined {
  if (path === '') return 'is empty; name a file, such as prompts/poet.md'
  if (path.length > 300) return 'is longer than 300 characters'
  // oxlint-disable-next-line no-control-regex -- a NUL ends a file name for the system, whatever follows it
  if (/[\u0000-\u001F\u007F\\]/.test(path)) return 'must not contain "\\" or control characters; write folder/file'
  if (/^(?:\/|[A-Za-z]:)/.test(path)) return 'must be relative to the folder of this file, such as prompts/poet.md'
  if (path.split('/').includes('..')) return 'must not leave the folder of this file: remove ".."'
  if (references(path).length > 0) return 'cannot hold variables: files are read when the agent is loaded'
  return undefined
}

/** Writes a double-quoted scalar: YAML accepts JSON's escapes; characters that YAML does not allow are escaped too. */
export function quote(content: string): string {
  return JSON.stringify(content).replaceAll(
    /[\u007F-\u009F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/* Rejects secrets in an agent's text, because the text is recorded, shown and passed on. */

type SecretForm = Omit<Secret, 'value'> & { form: string }

/** By their list: an agent may have a hundred files. */
const knownForms = new WeakMap<readonly Secret[], SecretForm[]>()

/** The longest first. */
function formsOfAll(secrets: readonly Secret[]): SecretForm[] {
  let forms = knownForms.get(secrets)
  if (forms === undefined) {
    forms = secrets
      .flatMap(({ value, ...secret }) => formsOf([value]).map((form) => ({ ...secret, form })))
      .toSorted((a, b) => b.form.length - a.form.length)
    knownForms.set(secrets, forms)
  }
  return forms
}

/** Adds a fault at every occurrence of a known secret, also encoded for JSON, URLs, base64 or hex. The message names the source, not the value. */
export function refuseSecrets(text: string, secrets: readonly Secret[], faults: FaultCollector): void {
  const taken: [number, number][] = []
  // If two overlap (a header and its token), report the longer one.
  for (const { form, from, cure } of formsOfAll(secrets)) {
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
      if (taken.some(([begin, end]) => at < end && at + form.length > begin)) continue
      taken.push([at, at + form.length])
      faults.add(at, `this is a secret, the value of ${from}, and an agent's text is recorded and shown; ${cure}`)
    }
  }
}
