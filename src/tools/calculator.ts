import { z } from 'zod'
import type { ToolImplementation } from './tool.ts'
import { evaluate } from './evaluate.ts'

/** `{expression}` → `{result}`. Errors give the position and the reason. */
export const calculator: ToolImplementation = {
  description: 'Evaluate a mathematical expression',
  parameters: z.object({
    expression: z
      .string()
      .describe('The math expression to evaluate, such as 2+2*3, 2^10, sqrt(2), round(pi, 2); angles in radians'),
  }),
  execute: ({ expression }: { expression: string }) => ({ result: evaluate(expression) }),
  idempotent: true,
}
