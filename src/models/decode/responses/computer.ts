/** The input of a computer call, in the AI SDK's names. */
import type { DoneItem } from './item-schema.ts'

type Call = Extract<DoneItem, { type: 'computer_call' }>
type Action = NonNullable<Call['action']>

export function computerInput({ action, actions, pending_safety_checks: checks, status }: Call) {
  const all = actions ?? (action ? [action] : [])
  return {
    actions: all.map(toAction),
    pendingSafetyChecks:
      checks?.map(({ id, code, message }) => ({
        id,
        ...(code !== null && code !== undefined && { code }),
        ...(message !== null && message !== undefined && { message }),
      })) ?? [],
    status,
  }
}

/** The order of the fields is that of the package: the input is a JSON text. */
function toAction(action: Action) {
  const keys = 'keys' in action && action.keys ? { keys: action.keys } : undefined
  switch (action.type) {
    case 'click':
      return { type: action.type, button: action.button, x: action.x, y: action.y, ...keys }
    case 'double_click':
    case 'move':
      return { type: action.type, x: action.x, y: action.y, ...keys }
    case 'drag':
      return { type: action.type, path: action.path, ...keys }
    case 'scroll':
      return {
        type: action.type,
        x: action.x,
        y: action.y,
        scrollX: action.scroll_x,
        scrollY: action.scroll_y,
        ...keys,
      }
    default:
      return action
  }
}
