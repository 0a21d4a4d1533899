// app/api/beddel/chat/route.ts
import { loadYaml } from 'millrace'
import { WorkflowExecutor } from 'millrace'
import { NextRequest } from 'next/server'

export async function POST(request: NextRequest) {
  const { agentId, messages } = await request.json()

  // Load agent YAML
  const yaml = await loadYaml(`src/agents/${agentId}.yaml`)

  // Create executor
  const executor = new WorkflowExecutor(yaml)

  // Execute pipeline
  const result = await executor.execute({ messages })

  // Result is either a streaming Response or JSON
  if (result instanceof Response) {
    return result
  }

  return Response.json(result)
}
