/** Rejects secrets in an agent's text, because the text is recorded, shown and passed on. */
import { formsOf } from '../fold/secret-forms.ts'
import type { FaultCollector } from './fault.ts'
import type { Secret } from './pipeline.ts'

/** Adds a fault at every occurrence of a known secret, also encoded for JSON, URLs, base64 or hex. The message names the source, not the value. */
export function refuseSecrets(text: string, secrets: readonly Secret[], faults: FaultCollector): void {
  const forms = secrets.flatMap(({ value, ...secret }) => formsOf([value]).map((form) => ({ ...secret, form })))
  const taken: [number, number][] = []
  // If two overlap (a header and its token), report the longer one.
  for (const { form, from, cure } of forms.toSorted((a, b) => b.form.length - a.form.length)) {
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
      if (taken.some(([begin, end]) => at < end && at + form.length > begin)) continue
      taken.push([at, at + form.length])
      faults.add(at, `this is a secret, the value of ${from}, and an agent's text is recorded and shown; ${cure}`)
    }
  }
}
