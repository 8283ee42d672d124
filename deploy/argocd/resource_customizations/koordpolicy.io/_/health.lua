-- Health of every kind of koordpolicy.io. Without a script Argo CD calls a new object healthy at once, compiled or not.
local health = {status = "Progressing", message = "waiting for koordpolicy to read it"}

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "being deleted"
  return health
end
if obj.status == nil or obj.status.conditions == nil then
  return health
end
if obj.status.observedGeneration ~= nil and obj.status.observedGeneration ~= obj.metadata.generation then
  health.message = "waiting for koordpolicy to read its last change"
  return health
end

local known = {}
for _, condition in ipairs(obj.status.conditions) do
  known[condition.type] = condition
end

local function told(condition)
  local message = condition.message
  if message == nil or message == "" then
    message = condition.reason or ""
  end
  local total = obj.status.diagnosticsTotal or 0
  if condition.status ~= "True" or condition.type == "Stalled" then
    if total > 1 then
      message = message .. " (" .. total .. " findings in all)"
    end
  end
  return message
end

local function is(kind, status)
  return known[kind] ~= nil and known[kind].status == status
end

local rollout = obj.status.rollout
if rollout ~= nil and rollout.phase == "Paused" then
  health.status = "Suspended"
  health.message = rollout.message or "the rollout is paused"
elseif is("Reconciling", "True") then
  health.message = told(known.Reconciling)
elseif is("Stalled", "True") then
  health.status = "Degraded"
  health.message = told(known.Stalled)
elseif is("Ready", "True") then
  health.status = "Healthy"
  health.message = told(known.Ready)
elseif is("Ready", "False") and known.Ready.reason == "Superseded" then
  health.status = "Healthy" -- it did its part; another revision decides now
  health.message = told(known.Ready)
elseif is("Ready", "False") and known.Ready.reason == "NotRun" then
  health.status = "Healthy" -- nobody runs it: newer ones came too soon
  health.message = told(known.Ready)
elseif is("Ready", "False") then
  health.status = "Degraded"
  health.message = told(known.Ready)
end
return health
