// For tests: what a manifest is.
#pragma once

namespace muster {

inline constexpr char kGoldenManifest[] =
    R"yaml(# Experiment 1.2 of project toy, as muster train gives it to Kubernetes. The secret and the supervisor's uid are
# filled in when it is submitted.
# job: muster-1-2-8c1f2a3b
apiVersion: v1
kind: Pod
metadata:
  name: muster-1-2-8c1f2a3b
  labels:
    app.kubernetes.io/name: muster
    muster/experiment: "1.2"
    muster/job: muster-1-2-8c1f2a3b
    muster/part: supervisor
    muster/host: supervisor
    sidecar.istio.io/inject: "false"
  annotations:
    muster/project: toy
    sidecar.istio.io/inject: "false"
    linkerd.io/inject: disabled
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    karpenter.sh/do-not-disrupt: "true"
    muster/start-timeout: "600"
spec:
  restartPolicy: Never
  hostname: supervisor
  subdomain: muster-1-2-8c1f2a3b
  terminationGracePeriodSeconds: 120
  enableServiceLinks: false
  automountServiceAccountToken: false
  securityContext:
    seccompProfile: {type: RuntimeDefault}
  imagePullSecrets:
    - {name: pull}
  nodeSelector: {disk: ssd}
  tolerations:
    - {key: gpu, operator: Exists}
  volumes:
    - {name: muster, emptyDir: {}}
    - name: secret
      secret: {secretName: muster-1-2-8c1f2a3b}
  containers:
    - name: muster
      image: "registry.example/team/train:1"
      command:
        - sh
        - "-c"
        - |
          [ -w "${HOME:-/nowhere}" ] || export HOME=/muster
          echo $$ >/muster/pid
          echo muster >/muster/muster
          child= asked= since= wish=
          trap 'asked=1; [ -z "$child" ] || kill -TERM "$child"' TERM INT
          trap '' USR1
          attend() {
            "$@" & child=$!
            [ -z "$asked$wish" ] || kill -TERM "$child"
            wait "$child"; code=$?
            while [ -z "$asked" ] || since=${since:-$(date +%s)}; [ "$code" -gt 128 ]; do
              lives=; ! kill -0 "$child" 2>/dev/null || lives=1
              wait "$child" 2>/dev/null; last=$?
              [ "$last" != 127 ] || break
              code=$last
              [ -n "$lives" ] || break
            done
            child=
            return "$code"
          }
          (umask 077 && cat /etc/muster/rendezvous >/muster/rendezvous) || exit 1
          attend muster home await 1.2 --patience 600 || exit "$code"
          rm -f /muster/said
          mkfifo /muster/said && { tee -a /muster/home/experiments/1/runs/2/job.out </muster/said & exec >/muster/said 2>&1; }
          trap 'wish=1; [ -z "$child" ] || kill -TERM "$child"' USR1
          for life in 1 2 3 4; do
            wish=
            attend muster supervise 1.2 --in_job kubernetes
            [ ! -e /muster/home/experiments/1/runs/2/job_over ] || break
          done
          trap '' USR1
          wish=
          end=$code asked=1
          while [ -n "$asked" ]; do
            asked= keep=86400
            [ -z "$since" ] || keep=$((since + 117 - $(date +%s)))
            [ "$keep" -ge 0 ] || break
            attend muster home linger 1.2 --keep "$keep"
          done
          exit "$end"
      env:
        - {name: MUSTER_HOME, value: /muster/home}
        - {name: MUSTER_KUBERNETES_JOB, value: muster-1-2-8c1f2a3b}
        - name: MUSTER_KUBERNETES_AT
          value: "{\"context\":\"c\",\"kubeconfig\":\"\",\"kubectl\":\"kubectl\",\"namespace\":\"team\"}"
        - {name: MUSTER_KUBERNETES_RUN, value: "8c1f2a3b"}
        - {name: MUSTER_KUBERNETES_PODS, value: "1"}
        - {name: MUSTER_KUBERNETES_PORT, value: "6464"}
        - {name: MUSTER_KUBERNETES_START_TIMEOUT, value: "600"}
        - {name: MUSTER_KUBERNETES_ENDING, value: "85"}
        - {name: MUSTER_KUBERNETES_API, value: "0"}
      resources:
        requests: {cpu: "100m", memory: "256Mi"}
        limits: {memory: "1Gi"}
      securityContext: {allowPrivilegeEscalation: false}
      volumeMounts:
        - {name: muster, mountPath: /muster}
        - {name: secret, mountPath: /etc/muster, readOnly: true}
---
apiVersion: v1
kind: Secret
metadata:
  name: muster-1-2-8c1f2a3b
  labels: {app.kubernetes.io/name: muster, muster/experiment: "1.2", muster/job: muster-1-2-8c1f2a3b}
  ownerReferences:
    - {apiVersion: v1, kind: Pod, name: muster-1-2-8c1f2a3b, uid: "00000000-0000-0000-0000-000000000000"}
type: Opaque
stringData:
  rendezvous: |
    muster rendezvous 1
    address supervisor.muster-1-2-8c1f2a3b:6464
    secret 0000000000000000000000000000000000000000000000000000000000000000
---
apiVersion: v1
kind: Service
metadata:
  name: muster-1-2-8c1f2a3b
  labels: {app.kubernetes.io/name: muster, muster/experiment: "1.2", muster/job: muster-1-2-8c1f2a3b}
  ownerReferences:
    - {apiVersion: v1, kind: Pod, name: muster-1-2-8c1f2a3b, uid: "00000000-0000-0000-0000-000000000000"}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {muster/job: muster-1-2-8c1f2a3b}
  ports:
    - {name: agents, port: 6464}
---
apiVersion: v1
kind: Pod
metadata:
  name: muster-1-2-8c1f2a3b-h0
  labels:
    app.kubernetes.io/name: muster
    muster/experiment: "1.2"
    muster/job: muster-1-2-8c1f2a3b
    muster/part: agent
    muster/host: h0
    sidecar.istio.io/inject: "false"
  annotations:
    muster/project: toy
    sidecar.istio.io/inject: "false"
    linkerd.io/inject: disabled
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    karpenter.sh/do-not-disrupt: "true"
  ownerReferences:
    - {apiVersion: v1, kind: Pod, name: muster-1-2-8c1f2a3b, uid: "00000000-0000-0000-0000-000000000000"}
spec:
  restartPolicy: Never
  hostname: h0
  subdomain: muster-1-2-8c1f2a3b
  terminationGracePeriodSeconds: 90
  enableServiceLinks: false
  automountServiceAccountToken: false
  securityContext:
    seccompProfile: {type: RuntimeDefault}
  imagePullSecrets:
    - {name: pull}
  nodeSelector: {disk: ssd}
  tolerations:
    - {key: gpu, operator: Exists}
  volumes:
    - {name: muster, emptyDir: {}}
    - name: secret
      secret: {secretName: muster-1-2-8c1f2a3b}
    - name: shm
      emptyDir: {medium: Memory, sizeLimit: "2147483648"}
    - name: claim-1
      persistentVolumeClaim: {claimName: data}
  containers:
    - name: muster
      image: "registry.example/team/train:1"
      command:
        - sh
        - "-c"
        - |
          [ -w "${HOME:-/nowhere}" ] || export HOME=/muster
          (umask 077 && cat /etc/muster/rendezvous >/muster/rendezvous) || exit 1
          exec muster agent --serve 8c1f2a3b --host_variable MUSTER_POD_HOST --rendezvous /muster/rendezvous --grace 30 --first 1200 --ending 85 --passes_signals
      env:
        - name: MUSTER_POD_HOST
          valueFrom:
            fieldRef: {fieldPath: "metadata.labels['muster/host']"}
      resources:
        requests: {cpu: "2500m", memory: "4496293888", nvidia.com/gpu: "1"}
        limits: {cpu: "2500m", memory: "4496293888", nvidia.com/gpu: "1"}
      securityContext: {allowPrivilegeEscalation: false}
      volumeMounts:
        - {name: muster, mountPath: /muster}
        - {name: secret, mountPath: /etc/muster, readOnly: true}
        - {name: shm, mountPath: /dev/shm}
        - {name: claim-1, mountPath: /data}
)yaml";

}  // namespace muster
