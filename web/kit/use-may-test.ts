import { useMayEdit } from '../data/edit-token.ts'
import { useMay, useServer } from '../data/server.ts'

/** Whether the reader may add, run and delete cases here: it writes files beside the agents. */
export function useMayTest(): boolean {
  const { facts } = useServer()
  const isAllowed = useMay('tests.edit') === true
  return useMayEdit(facts?.edit) && isAllowed && facts?.features?.tests === true
}
