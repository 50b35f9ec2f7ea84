# The left-hand program of docs/from_tensorflow.md, for TensorFlow 1 (or tensorflow.compat.v1).
# [program]
import argparse
import tensorflow as tf

# [cluster]
parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", default="")
parser.add_argument("--worker_hosts", default="")
parser.add_argument("--job_name", default="worker")
parser.add_argument("--task_index", type=int, default=0)
parser.add_argument("--model_dir", default=None)
flags = parser.parse_args()

cluster = tf.train.ClusterSpec({
    "ps": flags.ps_hosts.split(","),
    "worker": flags.worker_hosts.split(",")})
server = tf.train.Server(cluster, job_name=flags.job_name,
                         task_index=flags.task_index)
if flags.job_name == "ps":
    server.join()  # for ever
# [/cluster]

# [setter]
with tf.device(tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % flags.task_index,
        cluster=cluster)):
    x = tf.random_uniform([32, 4])
    hidden = tf.layers.dense(x, 16, tf.nn.relu, name="hidden")
    output = tf.layers.dense(hidden, 1, name="output")
    loss = tf.losses.mean_squared_error(
        tf.reduce_sum(x, 1, keepdims=True), output)
    global_step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdagradOptimizer(0.1).minimize(
        loss, global_step=global_step)
# [/setter]

# [session]
tf.summary.scalar("loss", loss)
hooks = [tf.train.StopAtStepHook(last_step=1000),
         tf.train.LoggingTensorHook({"loss": loss}, 500)]
config = tf.ConfigProto(allow_soft_placement=True)
with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=flags.task_index == 0,
        checkpoint_dir=flags.model_dir, hooks=hooks,
        save_summaries_steps=100, config=config) as session:
    # [/session]
    # [loop]
    while not session.should_stop():
        session.run(train_op)
    # [/loop]
# [/program]
