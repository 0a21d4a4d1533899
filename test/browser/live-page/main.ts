/** Shows what a tab gets of a run over the connection of all tabs. */
import { followRows, followRun, onConnection, readConnection } from '../../../web/data/live.ts'
import { createRunFold } from '../../../src/fold/run-fold.ts'

const show = (id: string, text: string) => {
  document.getElementById(id)!.textContent = text
}
const fold = createRunFold()
const faults: string[] = []
let seq = 0

const run = new URLSearchParams(location.search).get('run')!
followRun(run, 0, {
  onEntries(entries) {
    for (const entry of entries) {
      if ((entry.firstSeq ?? entry.seq) !== seq + 1) faults.push(`${entry.firstSeq ?? entry.seq} after ${seq}`)
      ;({ seq } = entry)
      fold.apply(entry)
    }
    const { status, text } = fold.view()
    show('text', `${text} (${status})`)
    show('faults', faults.join())
  },
  onGone: (reason) => faults.push(reason),
})
followRows((rows) => show('rows', rows.map(({ id, status }) => `${id} ${status}`).join()))
const state = () => show('state', readConnection().state)
onConnection(state)
state()
