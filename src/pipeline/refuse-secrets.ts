/** A secret in an agent's text: what the text holds is recorded, shown and handed on, so it is refused where it is read. */
import { formsOf } from '../part/secret-forms.ts'
import type { FaultCollector } from './fault.ts'
import type { Secret } from './pipeline.ts'

/** Adds a fault at every place of a known secret, also as it looks inside JSON, URLs, base64 and hex. Says whose value it is, not which. */
export function refuseSecrets(text: string, secrets: readonly Secret[], faults: FaultCollector): void {
  const forms = secrets.flatMap(({ value, ...secret }) => formsOf([value]).map((form) => ({ ...secret, form })))
  const taken: [number, number][] = []
  // Of two at one place (a header and the token in it) the longer one is meant.
  for (const { form, from, cure } of forms.toSorted((a, b) => b.form.length - a.form.length)) {
    for (let at = text.indexOf(form); at >= 0; at = text.indexOf(form, at + form.length)) {
      if (taken.some(([begin, end]) => at < end && at + form.length > begin)) continue
      taken.push([at, at + form.length])
      faults.add(at, `this is a secret, the value of ${from}, and an agent's text is recorded and shown; ${cure}`)
    }
  }
}
