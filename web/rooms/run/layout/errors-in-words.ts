/** How many errors a completed run has inside, and of what: `1 tool error`, `2 errors`. */
import { stateOf, type StepTree } from '../../../../src/fold/step-tree.ts'
import { count } from '../../../kit/format.ts'

export function errorsInWords(errors: number, { all }: Pick<StepTree, 'all'>): string {
  const failed = all.filter(({ step }) => step.kind === 'tool-call' || step.kind === 'client-tool').filter(isFailed)
  const what = failed.length === errors ? 'tool error' : 'error'
  return errors === 1 ? `1 ${what}` : `${count(errors)} ${what}s`
}

function isFailed(node: StepTree['all'][number]): boolean {
  return stateOf(node) === 'failed'
}
