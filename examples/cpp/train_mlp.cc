// train_mlp.cc - data-parallel training of a small network, from data to metrics, in plain C++.
// A perceptron with two hidden layers learns noisy 14x14 pictures of ten random prototypes. Every
// rank draws its own share of each epoch, gradients are averaged by one prepared operation,
// parameters start equal by a broadcast from rank 0. Run it with: horovodrun -np 2 ./train_mlp
// [epochs]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "horovod/hvd.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Vector = std::vector<float>;

constexpr int kPixels = 14 * 14;
constexpr int kClasses = 10;
constexpr int kHidden = 96;
constexpr int kTrainImages = 8192;
constexpr int kTestImages = 2048;
constexpr int kGlobalBatch = 128;  // stays the same for every number of ranks
constexpr float kLearningRate = 0.05f;
constexpr float kMomentum = 0.9f;

struct Dataset {
  Vector images;  // kPixels each
  std::vector<int> labels;
  std::size_t size() const { return labels.size(); }
};

// Ten prototypes from a fixed seed; a picture is one of them, shifted by up to two pixels, in
// noise.
Dataset make_dataset(int count, unsigned seed) {
  std::mt19937 prototype_random(7);
  std::normal_distribution<float> gauss(0.0f, 1.0f);
  std::vector<Vector> prototypes(kClasses, Vector(kPixels));
  for (Vector& prototype : prototypes) {
    for (float& pixel : prototype) pixel = gauss(prototype_random) > 0.6f ? 1.0f : 0.0f;
  }
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(0, kClasses - 1);
  std::uniform_int_distribution<int> shift(-1, 1);
  Dataset data;
  data.images.reserve(static_cast<std::size_t>(count) * kPixels);
  for (int i = 0; i < count; ++i) {
    const int label = pick(random);
    const int offset = shift(random) * 14 + shift(random);
    for (int p = 0; p < kPixels; ++p) {
      const int from = (p + offset + kPixels) % kPixels;
      data.images.push_back(prototypes[label][from] + 0.6f * gauss(random));
    }
    data.labels.push_back(label);
  }
  return data;
}

// Values that are learnt, by stochastic gradient descent with momentum.
struct Parameter {
  explicit Parameter(std::size_t count) : values(count), grad(count), velocity(count) {}

  void step() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      velocity[i] = kMomentum * velocity[i] + grad[i];
      values[i] -= kLearningRate * velocity[i];
    }
  }

  Vector values, grad, velocity;
};

// y = W x + b for a batch.
struct Dense {
  Dense(std::size_t input_count, std::size_t output_count, std::mt19937& random)
      : inputs(input_count),
        outputs(output_count),
        weights(input_count * output_count),
        bias(output_count) {
    std::normal_distribution<float> gauss(0.0f, std::sqrt(2.0f / static_cast<float>(inputs)));
    for (float& weight : weights.values) weight = gauss(random);
  }

  Vector forward(const Vector& x, std::size_t batch) const {
    Vector y(batch * outputs);
    for (std::size_t b = 0; b < batch; ++b) {
      float* out = &y[b * outputs];
      std::copy(bias.values.begin(), bias.values.end(), out);
      for (std::size_t i = 0; i < inputs; ++i) {
        const float value = x[b * inputs + i];
        const float* row = &weights.values[i * outputs];
        for (std::size_t o = 0; o < outputs; ++o) out[o] += value * row[o];
      }
    }
    return y;
  }

  // Fills the gradients from dL/dy and returns dL/dx.
  Vector backward(const Vector& x, const Vector& dy, std::size_t batch) {
    std::fill(weights.grad.begin(), weights.grad.end(), 0.0f);
    std::fill(bias.grad.begin(), bias.grad.end(), 0.0f);
    Vector dx(batch * inputs);
    for (std::size_t b = 0; b < batch; ++b) {
      const float* d = &dy[b * outputs];
      for (std::size_t o = 0; o < outputs; ++o) bias.grad[o] += d[o];
      for (std::size_t i = 0; i < inputs; ++i) {
        const float value = x[b * inputs + i];
        const float* row = &weights.values[i * outputs];
        float* grad = &weights.grad[i * outputs];
        float sum = 0.0f;
        for (std::size_t o = 0; o < outputs; ++o) {
          grad[o] += value * d[o];
          sum += row[o] * d[o];
        }
        dx[b * inputs + i] = sum;
      }
    }
    return dx;
  }

  std::size_t inputs, outputs;
  Parameter weights, bias;
};

void relu(Vector& values) {
  for (float& value : values) value = std::max(value, 0.0f);
}
void relu_backward(Vector& grad, const Vector& activation) {
  for (std::size_t i = 0; i < grad.size(); ++i) {
    if (activation[i] <= 0.0f) grad[i] = 0.0f;
  }
}

struct Score {
  double loss = 0.0;  // sums over the pictures seen
  double correct = 0.0;
};

// Turns logits into dL/dlogits of the mean cross entropy, in place.
Score softmax_cross_entropy(Vector& logits, const int* labels, int batch) {
  Score score;
  for (int b = 0; b < batch; ++b) {
    float* row = &logits[static_cast<std::size_t>(b) * kClasses];
    const auto best = std::max_element(row, row + kClasses);
    score.correct += best - row == labels[b] ? 1.0 : 0.0;
    const float top = *best;
    float total = 0.0f;
    for (int c = 0; c < kClasses; ++c) total += row[c] = std::exp(row[c] - top);
    for (int c = 0; c < kClasses; ++c) row[c] /= total;
    score.loss -= std::log(std::max(row[labels[b]], 1e-12f));
    row[labels[b]] -= 1.0f;
    for (int c = 0; c < kClasses; ++c) row[c] /= static_cast<float>(batch);
  }
  return score;
}

class Network {
 public:
  explicit Network(std::mt19937& random)
      : first_(kPixels, kHidden, random),
        second_(kHidden, kHidden, random),
        third_(kHidden, kClasses, random) {}

  Score forward(const Vector& x, const int* labels, int batch) {
    hidden1_ = first_.forward(x, batch);
    relu(hidden1_);
    hidden2_ = second_.forward(hidden1_, batch);
    relu(hidden2_);
    logits_ = third_.forward(hidden2_, batch);
    return softmax_cross_entropy(logits_, labels, batch);
  }

  void backward(const Vector& x, int batch) {
    Vector grad = third_.backward(hidden2_, logits_, batch);
    relu_backward(grad, hidden2_);
    grad = second_.backward(hidden1_, grad, batch);
    relu_backward(grad, hidden1_);
    first_.backward(x, grad, batch);
  }

  void step() {
    for (Dense* layer : layers()) {
      layer->weights.step();
      layer->bias.step();
    }
  }
  std::vector<Dense*> layers() { return {&first_, &second_, &third_}; }

 private:
  Dense first_, second_, third_;
  Vector hidden1_, hidden2_, logits_;
};

horovod::TensorList gradients_of(Network& network) {
  horovod::TensorList list;
  int index = 0;
  for (Dense* layer : network.layers()) {
    const std::string prefix = "grad/layer" + std::to_string(++index);
    list.add(prefix + "/weights", layer->weights.grad).add(prefix + "/bias", layer->bias.grad);
  }
  return list;
}

void gather_batch(const Dataset& data, const std::size_t* order, int batch, Vector& x,
                  std::vector<int>& labels) {
  for (int b = 0; b < batch; ++b) {
    const float* from = &data.images[order[b] * kPixels];
    std::copy(from, from + kPixels, x.begin() + static_cast<std::ptrdiff_t>(b) * kPixels);
    labels[b] = data.labels[order[b]];
  }
}

// Every rank tests its own slice; the sums of all slices make the accuracy of the job.
double test_accuracy(Network& network, const Dataset& test, const horovod::Session& session) {
  const std::size_t first = test.size() * session.rank() / session.size();
  const std::size_t last = test.size() * (session.rank() + 1) / session.size();
  const int count = static_cast<int>(last - first);
  const Vector x(test.images.begin() + static_cast<std::ptrdiff_t>(first * kPixels),
                 test.images.begin() + static_cast<std::ptrdiff_t>(last * kPixels));
  const double correct = network.forward(x, &test.labels[first], count).correct;
  horovod::Options sum;
  sum.name = "metric/correct";
  sum.op = horovod::ReduceOp::kSum;
  return horovod::allreduce_value(correct, sum) / static_cast<double>(test.size());
}

// Every rank applied the same averages to the same start, so not a single bit may differ.
bool all_ranks_are_equal(Network& network) {
  double sum = 0.0;
  double scale = 1.0;
  for (Dense* layer : network.layers()) {
    for (const Parameter* parameter : {&layer->weights, &layer->bias}) {
      for (const float value : parameter->values) sum += value * (scale *= 1.0001);
    }
  }
  horovod::Options options;
  options.name = "check/smallest";
  options.op = horovod::ReduceOp::kMin;
  const double smallest = horovod::allreduce_value(sum, options);
  options.name = "check/largest";
  options.op = horovod::ReduceOp::kMax;
  return smallest == horovod::allreduce_value(sum, options);
}

void train(const horovod::Session& session, int epochs) {
  const Dataset train_data = make_dataset(kTrainImages, 11);
  const Dataset test_data = make_dataset(kTestImages, 12);
  std::mt19937 init_random(100 +
                           session.rank());  // different on purpose: the broadcast makes them equal
  Network network(init_random);
  for (Dense* layer : network.layers()) {
    horovod::broadcast(layer->weights.values, 0);
    horovod::broadcast(layer->bias.values, 0);
  }
  horovod::Prepared average_gradients(gradients_of(network));

  const int batch = std::max(1, kGlobalBatch / session.size());
  const std::size_t steps = train_data.size() / (static_cast<std::size_t>(batch) * session.size());
  std::vector<std::size_t> order(train_data.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Vector x(static_cast<std::size_t>(batch) * kPixels);
  std::vector<int> labels(batch);
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    std::mt19937 shuffle_random(epoch);  // the same on every rank, so that the shares don't overlap
    std::shuffle(order.begin(), order.end(), shuffle_random);
    double loss = 0.0;
    Clock::duration communication{};
    const auto begin = Clock::now();
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t first = (step * session.size() + session.rank()) * batch;
      gather_batch(train_data, &order[first], batch, x, labels);
      loss += network.forward(x, labels.data(), batch).loss;
      network.backward(x, batch);
      const auto before = Clock::now();
      average_gradients.run();
      communication += Clock::now() - before;
      network.step();
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    horovod::Options average;
    average.name = "metric/loss";
    const double mean_loss =
        horovod::allreduce_value(loss / static_cast<double>(steps * batch), average);
    const double accuracy = test_accuracy(network, test_data, session);
    if (session.rank() == 0) {
      std::printf(
          "epoch %2d  loss %.4f  accuracy %5.1f %%  %8.0f images/s  %4.1f %% communication\n",
          epoch, mean_loss, 100.0 * accuracy,
          static_cast<double>(steps * batch * session.size()) / seconds,
          100.0 * std::chrono::duration<double>(communication).count() / seconds);
      std::fflush(stdout);
    }
  }
  const bool are_equal = all_ranks_are_equal(network);
  if (session.rank() == 0) {
    std::printf("all ranks hold %s parameters\n", are_equal ? "the same" : "DIFFERENT");
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int epochs = argc > 1 ? std::atoi(argv[1]) : 8;
    const horovod::Session session;
    train(session, epochs);
    return 0;
  } catch (const horovod::Error& error) {
    std::fprintf(stderr, "train_mlp: %s: %s\n", hvd_status_name(error.status()), error.what());
    return 1;
  }
}
