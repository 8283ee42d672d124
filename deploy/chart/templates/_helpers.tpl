{{/* A file of deploy/ for this installation: its namespace, its ports. Arguments: the top, the file's path. */}}
{{- define "koordpolicy.file" -}}
{{- $top := index . 0 -}}
{{- $path := printf "files/%s" (index . 1) -}}
{{- $text := $top.Files.Get $path -}}
{{- if not $text }}{{ fail (printf "the chart lacks %s; of a checkout, package it with `helm package`" $path) }}{{ end -}}
{{- $text = $text | replace "koordpolicy-system" $top.Values.installation.namespace -}}
{{- if hasPrefix "manager/" (index . 1) -}}
{{- $text = $text | replace "8080" (toString $top.Values.manager.metrics.port) | replace "9876" (toString $top.Values.manager.webhook.port) -}}
{{- else if hasPrefix "scheduler/" (index . 1) -}}
{{- $text = $text | replace "8080" (toString $top.Values.scheduler.port) -}}
{{- else if hasPrefix "descheduler/" (index . 1) -}}
{{- $text = $text | replace "8080" (toString $top.Values.descheduler.port) -}}
{{- else if hasPrefix "yarn-operator/" (index . 1) -}}
{{- $text = $text | replace "8080" (toString $top.Values.yarnOperator.port) -}}
{{- end -}}
{{- $text -}}
{{- end }}

{{/* The values of a component, `yarnOperator` of the component yarn-operator: under which key they stand. */}}
{{- define "koordpolicy.key" -}}
{{ camelcase . | untitle }}
{{- end }}

{{/* The documents of a file, each with the chart's labels. Bindings name accounts of components that are installed alone. */}}
{{- define "koordpolicy.documents" -}}
{{- $top := index . 0 -}}
{{- range $text := splitList "\n---\n" (include "koordpolicy.file" .) }}
{{- $document := fromYaml $text }}
{{- if $document.kind }}
{{- include "koordpolicy.label" (list $top $document) }}
{{- if hasKey $document "subjects" }}
{{- $subjects := list }}
{{- range $document.subjects }}
{{- $component := get $top.Values (include "koordpolicy.key" (trimPrefix "koordpolicy-" .name)) }}
{{- if and $component $component.enabled }}{{ $subjects = append $subjects . }}{{ end }}
{{- end }}
{{- $_ := set $document "subjects" $subjects }}
{{- end }}
---
{{ toYaml $document }}
{{- end }}
{{- end }}
{{- end }}

{{/* Adds the chart's labels to an object. */}}
{{- define "koordpolicy.label" -}}
{{- $top := index . 0 -}}
{{- $metadata := get (index . 1) "metadata" -}}
{{- $labels := deepCopy (default dict $metadata.labels) -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" $top.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/version" $top.Chart.AppVersion -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" $top.Chart.Name $top.Chart.Version) -}}
{{- $_ := set $metadata "labels" $labels -}}
{{- end }}

{{/* An image's name. Arguments: the top, the component's own `image`. */}}
{{- define "koordpolicy.image" -}}
{{- $top := index . 0 -}}
{{- $own := default dict (index . 1) -}}
{{- $repository := default $top.Values.image.repository $own.repository -}}
{{- $host := $top.Values.imageRepositoryHost -}}
{{- if $host }}{{ $repository = printf "%s/%s" (trimSuffix "/" $host) $repository }}{{ end -}}
{{- $digest := default $top.Values.image.digest $own.digest -}}
{{- $tag := default $top.Values.image.tag $own.tag | default $top.Chart.AppVersion -}}
{{- if $digest }}{{ printf "%s@%s" $repository $digest }}{{ else }}{{ printf "%s:%s" $repository $tag }}{{ end -}}
{{- end }}

{{/* What every workload's pods take from the values. Changes the object. Arguments: the top, the object, the component's name. */}}
{{- define "koordpolicy.pods" -}}
{{- $top := index . 0 -}}
{{- $object := index . 1 -}}
{{- $name := index . 2 -}}
{{- $values := get $top.Values (include "koordpolicy.key" $name) -}}
{{- include "koordpolicy.label" (list $top $object) -}}
{{- $template := $object.spec.template -}}
{{- $pod := $template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- $labels := merge (deepCopy $template.metadata.labels) $values.podLabels -}}
{{- $_ := set $template.metadata "labels" $labels -}}
{{- with $values.podAnnotations }}{{ $_ := set $template.metadata "annotations" . }}{{ end -}}
{{- range concat (default list $pod.initContainers) $pod.containers -}}
{{- if hasPrefix "koordpolicy:" .image -}}
{{- $_ := set . "image" (include "koordpolicy.image" (list $top $values.image)) -}}
{{- with $top.Values.image.pullPolicy }}{{ $_ := set $container "imagePullPolicy" . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- with $top.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end -}}
{{- with $values.resources }}{{ $_ := set $container "resources" . }}{{ end -}}
{{- with $values.nodeSelector }}{{ $_ := set $pod "nodeSelector" . }}{{ end -}}
{{- with $values.nodeAffinity }}{{ $_ := set $pod "affinity" (dict "nodeAffinity" .) }}{{ end -}}
{{- if $values.tolerations }}{{ $_ := set $pod "tolerations" $values.tolerations }}{{ else }}{{ $_ := unset $pod "tolerations" }}{{ end -}}
{{- $_ := set $pod "priorityClassName" $values.priorityClassName -}}
{{- if $values.hostNetwork }}{{ $_ := set $pod "hostNetwork" true }}{{ $_ := set $pod "dnsPolicy" "ClusterFirstWithHostNet" }}{{ end -}}
{{- $args := $container.args -}}
{{- if ne $top.Values.installation.namespace "koordpolicy-system" }}{{ $args = append $args (printf "--namespace=%s" $top.Values.installation.namespace) }}{{ end -}}
{{- if gt (int $values.log.level) 4 }}{{ $args = append $args "--verbose" }}{{ end -}}
{{- if ne $values.log.format "text" }}{{ $args = append $args (printf "--log-format=%s" $values.log.format) }}{{ end -}}
{{- with $top.Values.tracing }}{{ if and .endpoint (not (has $name (list "descheduler" "yarn-operator"))) }}{{ $args = concat $args (list (printf "--tracing-endpoint=%s" .endpoint) (printf "--tracing-sampling=%v" .sampling)) }}{{ end }}{{ end -}}
{{- $_ := set $container "args" (concat $args $values.extraArgs) -}}
{{- end }}

{{/* What all but the agent take from the values beside that. Changes the object. */}}
{{- define "koordpolicy.deployment" -}}
{{- $top := index . 0 -}}
{{- $object := index . 1 -}}
{{- $values := get $top.Values (include "koordpolicy.key" (index . 2)) -}}
{{- $pod := $object.spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- $_ := set $object.spec "replicas" $values.replicas -}}
{{- range $pod.topologySpreadConstraints }}{{ $_ := set . "whenUnsatisfiable" $values.spread }}{{ end -}}
{{- $from := $top.Values.policies.from -}}
{{- if eq $from "gitSync" }}{{ include "koordpolicy.gitSync" . -}}
{{- else if eq $from "cluster" }}{{ include "koordpolicy.kustomize" (list $top $object "policies-from-cluster") -}}
{{- else if eq $from "configMap" }}{{ include "koordpolicy.configMap" . -}}
{{- else if eq $from "repository" }}{{ include "koordpolicy.repository" . -}}
{{- end -}}
{{- with $top.Values.serving.tlsSecretName -}}
{{- $args := without $container.args "--http-anonymous-auth" -}}
{{- $args = concat $args (list "--tls-cert-file=/etc/koordpolicy/tls/tls.crt" "--tls-private-key-file=/etc/koordpolicy/tls/tls.key") -}}
{{- $args = append $args (ternary "--delegated-auth" "--http-anonymous-auth" $top.Values.serving.delegatedAuth) -}}
{{- $_ := set $container "args" $args -}}
{{- include "koordpolicy.mount" (list $pod $container "tls" "/etc/koordpolicy/tls" (dict "secret" (dict "secretName" .))) -}}
{{- range $probe := list "livenessProbe" "readinessProbe" "startupProbe" }}{{ $_ := set (get $container $probe).httpGet "scheme" "HTTPS" }}{{ end -}}
{{- end -}}
{{- include "koordpolicy.pods" . -}}
{{- end }}

{{/* Adds a volume and its mount, read-only. Arguments: the pod, the container, a name, a path, the volume's source. */}}
{{- define "koordpolicy.mount" -}}
{{- $pod := index . 0 -}}
{{- $container := index . 1 -}}
{{- $mount := dict "name" (index . 2) "mountPath" (index . 3) "readOnly" true -}}
{{- $_ := set $container "volumeMounts" (append $container.volumeMounts $mount) -}}
{{- $_ := set $pod "volumes" (append $pod.volumes (merge (dict "name" (index . 2)) (index . 4))) -}}
{{- end }}

{{/*
Carries out the patches of a kustomization in deploy/: a strategic merge of sidecars and volumes, and additions to the first
container's lists. Changes the object. Arguments: the top, the object, the folder.
*/}}
{{- define "koordpolicy.kustomize" -}}
{{- $top := index . 0 -}}
{{- $object := index . 1 -}}
{{- $folder := index . 2 -}}
{{- $pod := $object.spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- range (include "koordpolicy.file" (list $top (printf "%s/kustomization.yaml" $folder)) | fromYaml).patches -}}
{{- if or (not .target.name) (eq .target.name $object.metadata.name) -}}
{{- if .path -}}
{{- $patch := (include "koordpolicy.file" (list $top (printf "%s/%s" $folder .path)) | fromYaml).spec.template.spec -}}
{{- with $patch.initContainers }}{{ $_ := set $pod "initContainers" (concat . (default list $pod.initContainers)) }}{{ end -}}
{{- $_ := set $pod "volumes" (concat (default list $patch.volumes) $pod.volumes) -}}
{{- else -}}
{{- range fromYamlArray .patch -}}
{{- $field := .path | trimPrefix "/spec/template/spec/containers/0/" | trimSuffix "/-" -}}
{{- if or (ne .op "add") (not (has $field (list "args" "volumeMounts"))) }}{{ fail (printf "the chart does not know how to %s %s" .op .path) }}{{ end -}}
{{- $_ := set $container $field (append (get $container $field) .value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "koordpolicy.gitSync" -}}
{{- $top := index . 0 -}}
{{- $values := $top.Values.policies.gitSync -}}
{{- include "koordpolicy.kustomize" (list $top (index . 1) "git-sync") -}}
{{- $pod := (index . 1).spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- with $values.path -}}
{{- $given := list -}}
{{- range $container.args }}{{ $given = append $given (ternary (printf "%s/%s" . (trimAll "/" $values.path)) . (hasPrefix "--policies=" .)) }}{{ end -}}
{{- $_ := set $container "args" $given -}}
{{- end -}}
{{- range $sidecar := $pod.initContainers -}}
{{- if eq $sidecar.name "git-sync" -}}
{{- $image := $values.image -}}
{{- with $top.Values.imageRepositoryHost }}{{ $image = printf "%s/%s" (trimSuffix "/" .) $image }}{{ end -}}
{{- $_ := set $sidecar "image" $image -}}
{{- $args := list -}}
{{- range $sidecar.args }}{{ $args = append $args (ternary (printf "--period=%s" $values.period) . (hasPrefix "--period=" .)) }}{{ end -}}
{{- with $values.secretName -}}
{{- $https := list (dict "name" "GITSYNC_USERNAME" "valueFrom" (dict "secretKeyRef" (dict "name" . "key" "username" "optional" true))) -}}
{{- $_ := set $sidecar "env" $https -}}
{{- $args = concat $args (list "--password-file=/etc/git-secret/password" "--ssh-key-file=/etc/git-secret/ssh" "--ssh-known-hosts-file=/etc/git-secret/known_hosts") -}}
{{- if hasPrefix "http" $values.repo }}{{ $args = initial (initial $args) }}{{ else }}{{ $args = without $args "--password-file=/etc/git-secret/password" }}{{ end -}}
{{- include "koordpolicy.mount" (list $pod $sidecar "git-secret" "/etc/git-secret" (dict "secret" (dict "secretName" . "defaultMode" 288))) -}}
{{- end -}}
{{- $_ := set $sidecar "args" $args -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "koordpolicy.configMap" -}}
{{- $pod := (index . 1).spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- $name := required "policies.configMap.name: which ConfigMap holds the policies" (index . 0).Values.policies.configMap.name -}}
{{- $_ := set $container "args" (append $container.args "--policies=/policies") -}}
{{- include "koordpolicy.mount" (list $pod $container "policies" "/policies" (dict "configMap" (dict "name" $name))) -}}
{{- end }}

{{- define "koordpolicy.repository" -}}
{{- $values := (index . 0).Values.policies.repository -}}
{{- $pod := (index . 1).spec.template.spec -}}
{{- $container := index $pod.containers 0 -}}
{{- $args := append $container.args (printf "--policies-repo=%s" (required "policies.repository.url: which repository holds the policies" $values.url)) -}}
{{- with $values.ref }}{{ $args = append $args (printf "--policies-ref=%s" .) }}{{ end -}}
{{- with $values.path }}{{ $args = append $args (printf "--policies-path=%s" .) }}{{ end -}}
{{- $args = append $args (printf "--policies-period=%s" $values.period) -}}
{{- with $values.secretName -}}
{{- include "koordpolicy.mount" (list $pod $container "git-secret" "/etc/git-secret" (dict "secret" (dict "secretName" . "defaultMode" 288))) -}}
{{- $flags := dict "password" "--policies-password-file" "ssh-key" "--policies-ssh-key" "known_hosts" "--policies-known-hosts" -}}
{{- range $values.keys }}{{ $args = append $args (printf "%s=/etc/git-secret/%s" (get $flags .) .) }}{{ end -}}
{{- end -}}
{{- with $values.verify.ssh -}}
{{- $args = append $args "--policies-verify-ssh=/etc/koordpolicy/signers/allowed_signers" -}}
{{- include "koordpolicy.mount" (list $pod $container "signers" "/etc/koordpolicy/signers" (dict "configMap" (dict "name" .))) -}}
{{- end -}}
{{- with $values.verify.gpg -}}
{{- $args = append $args "--policies-verify-gpg=/etc/koordpolicy/keys" -}}
{{- include "koordpolicy.mount" (list $pod $container "keys" "/etc/koordpolicy/keys" (dict "configMap" (dict "name" .))) -}}
{{- end -}}
{{- $_ := set $container "args" $args -}}
{{- end }}
